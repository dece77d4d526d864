import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ScrubReport } from '@webdfs/webdfs/remote';
import { scrubText } from './scrub-text.ts';

const POLICY: ScrubReport['policies'][number] = {
  policy: 1,
  copies: 3,
  groups: 16,
  countedGroups: 16,
  objects: { 3: 57, 2: 3 },
  others: { 3: 2 },
  bytes: 2048,
  found: { missing: 1, damaged: 2 },
  mended: 2,
  left: 1,
  problems: [
    {
      bucket: 'photos',
      key: 'a.jpg',
      what: 'block 1',
      group: 4,
      copies: 2,
      wrong: [{ node: 2, fault: 'damaged' }],
      mended: true,
    },
    {
      key: '00000001',
      what: 'record',
      group: 5,
      copies: 0,
      wrong: [{ node: 1, fault: 'damaged' }],
      mended: false,
      why: 'no good copy',
    },
  ],
  omitted: 3,
};
const REPORT: ScrubReport = {
  state: 'complete',
  pass: { began: '2026-01-01T00:00:00.000Z', bytesPerSecond: 1048576 },
  complete: true,
  clean: false,
  policies: [POLICY],
  notCounted: [],
  notCountedGroups: 0,
  nodes: [{ node: 1, state: 'done', isRead: true }],
  progress: { share: 1, bytesPerSecond: 0, secondsLeft: 0 },
};

function textOf(change: Partial<ScrubReport> = {}): string {
  return scrubText({ ...REPORT, ...change }).join('\n');
}

test('the report says how many objects have how many copies, what was wrong, and what was not mended', () => {
  const text = textOf();
  assert.match(text, /objects by good copies, as found: 57 with 3, 3 with 2/);
  assert.match(text, /wrong copies: 1 missing, 2 damaged; 2 mended, 1 left/);
  assert.match(text, /s3:\/\/photos\/a.jpg, block 1: damaged at node 2; mended/);
  assert.match(text, /NOT MENDED: no good copy/);
  assert.match(text, /and 3 more/);
});

test('only a complete report says so, and only a clean one says that all is good', () => {
  assert.match(textOf(), /^Complete: everything was counted\. Not every copy was good/m);
  assert.match(textOf({ clean: true }), /^Complete: everything was counted, and every copy is good/m);
  for (const state of ['running', 'stopped'] as const) {
    const text = textOf({ state, complete: false });
    assert.match(text, /^NOT COMPLETE/m);
    assert.doesNotMatch(text, /^Complete/m);
  }
});

test('what was not counted is named, group by group and node by node', () => {
  const notCounted = Array.from({ length: 30 }, (_, group) => ({ policy: 1, group, why: 'node 3 does not answer' }));
  const nodes: ScrubReport['nodes'] = [
    { node: 2, state: 'working', isRead: false, volumes: { read: 1, of: 4 } },
    { node: 3, state: 'silent', isRead: false, why: 'PEER_LOST' },
  ];
  const text = textOf({ state: 'running', complete: false, notCounted, notCountedGroups: 100, nodes });
  assert.match(text, /not counted: group 1\/0: node 3 does not answer/);
  assert.match(text, /not counted: 80 groups more/);
  assert.match(text, /node 2: 1 of 4 volumes read/);
  assert.match(text, /node 3: PEER_LOST/);
});
