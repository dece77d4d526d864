import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { asGroupId } from '@webdfs/base';
import { FIRST_POLICY } from '../create-cluster.ts';
import { parseFounding, parseJoining } from '../founding.ts';
import { MapSnapshot } from '../map-view.ts';

/** The blocks of the page on the keys, as keys and values. */
function blocks(): Map<string, string>[] {
  const page = readFileSync(new URL('../../../../docs/formats/etcd.md', import.meta.url), 'utf8');
  return [...page.matchAll(/```\n([^`]*)```/g)].map(([, block]) => {
    const lines = block!.trim().split('\n');
    return new Map(
      lines.map((line) => {
        const end = line.indexOf(' ');
        assert.ok(line.startsWith('/webdfs/home/'), line);
        return [line.slice('/webdfs/home/'.length, end), line.slice(end + 1)];
      }),
    );
  });
}

test('the example of the format page is a map, and shows what the page says', () => {
  const [cluster] = blocks();
  const entries = [...cluster!].map(([key, value], i) => ({ key, value, createRevision: i + 1, modRevision: i + 1 }));
  const map = MapSnapshot.of({ revision: entries.length, entries });
  assert.equal(map.map.name, 'home');
  assert.deepEqual(map.marked(), [2]);
  assert.equal(map.node(map.nodes()[0]!)?.address, '10.0.0.1:9001');
  const view = map.group({ policy: FIRST_POLICY, group: asGroupId(77) });
  assert.deepEqual([view.inSync, view.primary, view.health], [[1], 1, 'degraded']);
});

test('the example of a founding is one', () => {
  const [, founding] = blocks();
  const [[, text], [key, joining]] = [...founding!] as [[string, string], [string, string]];
  assert.equal(parseFounding(text).nodes, 2);
  assert.deepEqual(parseJoining(key, joining), { labels: { machine: 'a' }, weight: 1 });
});
