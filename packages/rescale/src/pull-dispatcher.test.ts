import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import type { Parcel, Transfer } from './parcel.ts';
import { planRescale } from './plan.ts';
import { PullDispatcher } from './pull-dispatcher.ts';
import { someParcels } from './test-parcels.ts';
import { NODES, TestRun } from './test-run.ts';

function planOf(parcels: readonly Parcel[]): readonly Transfer[] {
  return planRescale(parcels, () => ({ network: 100, read: 100, write: 100 })).transfers;
}

test('a plan is carried out to its end, whatever the order in which things end', (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 20; round++) {
    const transfers = planOf(someParcels(random, { parcels: 80, nodes: NODES, bytes: 10 }));
    const limits = {
      windowBytes: 10 * (1 + random.below(6)),
      keepBytes: 10 * random.below(5),
      depth: 1 + random.below(3),
    };
    const run = new TestRun(transfers, limits);
    run.run(random);
    assert.ok(run.done, JSON.stringify(limits));
    assert.deepEqual(run.written.toSorted(), transfers.map(({ parcel, to }) => `${parcel}>${to}`).toSorted());
    assert.ok(run.mostOpen <= limits.windowBytes, `${run.mostOpen} bytes are open, allowed are ${limits.windowBytes}`);
    assert.equal(run.kept, 0);
  }
});

test('chains of copies that are passed on end, too, with a window of one', (t) => {
  const random = randomOf(t);
  const parcels = Array.from({ length: 40 }, (_, id): Parcel => {
    const [first = 2, ...others] = [2, 3, 4, 5, 6].slice(id % 3);
    return { id, bytes: 10, holders: [asNodeId(1)], receivers: [first, ...others].map(asNodeId), safeCopies: 1 };
  });
  const transfers = planOf(parcels);
  assert.ok(transfers.some(({ depth }) => depth > 0));
  const run = new TestRun(transfers, { windowBytes: 10, keepBytes: 0, depth: 1 });
  run.run(random);
  assert.ok(run.done);
});

test('a parcel that is kept is read once for all that get it', (t) => {
  const transfers = planOf(someParcels(randomOf(t), { parcels: 60, nodes: NODES, bytes: 10 }));
  const run = new TestRun(transfers, { windowBytes: 40, keepBytes: Infinity, depth: 2 });
  run.run(randomOf(t));
  assert.equal(new Set(run.reads).size, run.reads.length);
});

test('memory holds no more than what is under way and what it was told to keep', (t) => {
  const random = randomOf(t);
  const parcels = Array.from({ length: 100 }, (_, id): Parcel => {
    return { id, bytes: 10, holders: [asNodeId(1)], receivers: [2, 3, 4].map(asNodeId), safeCopies: 1 };
  });
  const run = new TestRun(planOf(parcels), { windowBytes: 20, keepBytes: 30, depth: 1 });
  run.run(random);
  // three receivers ask for two at a time
  assert.ok(run.mostKept <= 3 + 6 + 1, `${run.mostKept} parcels in memory`);
});

test('a transfer that is larger than the window is pulled alone', () => {
  const parcels = [1, 2].map((id): Parcel => {
    return { id, bytes: 50, holders: [asNodeId(1)], receivers: [asNodeId(2)], safeCopies: 1 };
  });
  const dispatcher = new PullDispatcher(asNodeId(2), planOf(parcels), { windowBytes: 20, keepBytes: 0, depth: 1 });
  assert.equal(dispatcher.step({ type: 'started' }).length, 1);
});
