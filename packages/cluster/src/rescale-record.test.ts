import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf } from '@webdfs/base';
import { RESCALE_PREFIX } from './keys.ts';
import { aMap, type MapBuilder } from './model/map-builder.ts';
import {
  type KeptRescale,
  MAX_RESCALES,
  type NewRescale,
  openRescale,
  parseRescaleRecord,
  proposeAccount,
  rescalesIn,
  withRescale,
} from './rescale-record.ts';

const NOTHING = { compare: [], write: [] };

function aBegin(command: string): NewRescale {
  return {
    command,
    beganMs: 1_000,
    planned: { groups: 10, copies: 12, bytes: 4_096, leastBytes: 4_000 },
    open: { nodes: [[1, 10, 5, 0, 5, 5]], meters: [], lookedMs: 1_000 },
  };
}

function keptIn(map: MapBuilder): KeptRescale[] {
  return rescalesIn(map.snapshot.contents());
}

test('a change ends the account of the one before it and begins its own; of two at once one wins', () => {
  const map = aMap({ nodes: 3 });
  assert.ok(map.transact(withRescale(NOTHING, [], { begin: aBegin('add') })));
  const seen = keptIn(map);
  assert.equal(openRescale(seen)?.record.command, 'add');
  const end = { outcome: 'replaced', endedMs: 5_000, groups: 4 } as const;
  assert.ok(map.transact(withRescale(NOTHING, seen, { end, begin: aBegin('remove 2') })));
  assert.ok(!map.transact(withRescale(NOTHING, seen, { end, begin: aBegin('remove 3') })), 'it was seen by another');
  const [first, second] = keptIn(map);
  assert.deepEqual(first?.record, {
    number: 1,
    command: 'add',
    beganMs: 1_000,
    planned: { groups: 10, copies: 12, bytes: 4_096, leastBytes: 4_000 },
    moved: { bytes: 0, groups: 4 },
    pausedMs: 0,
    outcome: 'replaced',
    endedMs: 5_000,
  });
  assert.equal(second?.record.number, 2);
  assert.equal(openRescale(keptIn(map))?.record.command, 'remove 2');
});

test('who goes on with an account that another has written meanwhile is refused', () => {
  const map = aMap({ nodes: 3 });
  map.transact(withRescale(NOTHING, [], { begin: aBegin('add') }));
  const [kept] = keptIn(map);
  const moved = { ...kept!.record, moved: { bytes: 77, groups: 1 } };
  assert.ok(map.transact(proposeAccount(kept!, moved, [])));
  assert.ok(!map.transact(proposeAccount(kept!, moved, [])));
  assert.equal(keptIn(map)[0]?.record.moved.bytes, 77);
});

test('the last hundred are kept', () => {
  const map = aMap({ nodes: 3 });
  for (let i = 0; i < MAX_RESCALES + 7; i++) {
    const end = { outcome: 'settled', endedMs: 1, groups: 1 } as const;
    assert.ok(map.transact(withRescale(NOTHING, keptIn(map), { end, begin: aBegin(`change ${i}`) })));
  }
  const numbers = keptIn(map).map(({ record }) => record.number);
  assert.equal(numbers.length, MAX_RESCALES);
  assert.equal(numbers.at(-1), MAX_RESCALES + 7);
});

test('what is no account is said to be damaged, by its key', () => {
  for (const text of ['', '[]', '{}', '{"number":1}', JSON.stringify({ ...aBegin('x'), number: 'one' })]) {
    assert.throws(
      () => parseRescaleRecord(`${RESCALE_PREFIX}7`, text),
      (error: Error) => codeOf(error) === 'CORRUPT' && error.message.includes('rescale/7'),
    );
  }
});
