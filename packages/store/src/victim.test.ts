import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { chooseVolume, mustKeepTombstones, type VolumeFacts } from './victim.ts';

const OVERHEAD = 168;

function aVolume(facts: Partial<VolumeFacts> & { id: number }): VolumeFacts {
  return { size: 10_000 + OVERHEAD, live: 10_000, tombstones: 0, horizon: 0, ...facts };
}

function choose(all: readonly VolumeFacts[], leastShare = 0.3): number | undefined {
  const highest = Math.max(0, ...all.map(({ id }) => id));
  return chooseVolume(all, { leastShare, highest, allowed: () => true })?.id;
}

test('a volume without enough garbage is left alone, the fullest of it goes first, the older of equals', () => {
  assert.equal(choose([aVolume({ id: 1, live: 8000 })]), undefined);
  assert.equal(choose([aVolume({ id: 1, live: 8000 })], 0.1), 1);
  assert.equal(choose([aVolume({ id: 1, live: 5000 }), aVolume({ id: 2, live: 1000 })]), 1, 'age weighs');
  assert.equal(choose([aVolume({ id: 1, live: 6000 }), aVolume({ id: 2, live: 0 }), aVolume({ id: 9 })]), 2);
  assert.equal(choose([aVolume({ id: 4, live: 5000 }), aVolume({ id: 3, live: 5000 })]), 3);
});

test('tombstones that an older file may need are no garbage, and are garbage once it is gone', () => {
  const tombstones = aVolume({ id: 5, live: 4000, tombstones: 6000, horizon: 4 });
  assert.equal(mustKeepTombstones(tombstones, [tombstones, aVolume({ id: 4 })]), true);
  assert.equal(mustKeepTombstones(tombstones, [tombstones, aVolume({ id: 6 })]), false);
  assert.equal(choose([tombstones, aVolume({ id: 6 })]), 5);
  const few = aVolume({ id: 5, live: 9000, tombstones: 1000, horizon: 4 });
  assert.equal(choose([few, aVolume({ id: 6 })]), 5, 'more than 5 % could go');
  assert.equal(choose([few, aVolume({ id: 2, size: 100_000 + OVERHEAD, live: 100_000 })]), undefined);
});

test('when tombstones that wait are more than 5 % of the store, the oldest file in their way is rewritten, all alive', () => {
  assert.equal(choose([aVolume({ id: 2 }), aVolume({ id: 3 }), aVolume({ id: 5, tombstones: 2000, horizon: 4 })]), 2);
});

test('repeated choosing ends: each rewriting frees space or takes an old file away', (t) => {
  const facts = fc.record({
    live: fc.nat(5000),
    tombstones: fc.nat(5000),
    garbage: fc.nat(5000),
    horizon: fc.nat(12),
  });
  fc.assert(
    fc.property(fc.array(facts, { minLength: 1, maxLength: 8 }), (several) => {
      let highest = several.length;
      let all: VolumeFacts[] = several.map(({ live, tombstones, garbage, horizon }, i) => ({
        id: i + 1,
        live,
        tombstones,
        size: live + tombstones + garbage + OVERHEAD,
        horizon: Math.min(horizon, highest),
      }));
      for (let step = 0; ; step++) {
        const victim = chooseVolume(all, { leastShare: 0.1, highest, allowed: () => true });
        if (victim === undefined) return;
        assert.ok(step < 100, 'it ends');
        const tombstones = mustKeepTombstones(victim, all) ? victim.tombstones : 0;
        all = all.filter((volume) => volume !== victim);
        if (victim.live + tombstones === 0) continue;
        highest += 1;
        const size = victim.live + tombstones + OVERHEAD;
        all.push({ id: highest, live: victim.live, tombstones, size, horizon: victim.horizon });
      }
    }),
    { seed: seedOf(t), numRuns: 500 },
  );
});
