import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, type NodeId, type SeededRandom } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import type { IOEffect, IOEvent } from './io-step.ts';
import type { Parcel, Transfer } from './parcel.ts';
import { planRescale } from './plan.ts';
import { PullDispatcher, type PullLimits } from './pull-dispatcher.ts';
import { someParcels } from './test-parcels.ts';

const NODES = 6;

/** Runs a plan; whatever is under way ends in a random order. */
class Run {
  readonly reads: string[] = [];
  readonly written: string[] = [];
  mostOpen = 0;
  mostKept = 0;
  readonly #nodes: Map<NodeId, PullDispatcher>;
  readonly #underWay: [NodeId, IOEvent][] = [];
  readonly #open = new Map<NodeId, number>();
  readonly #kept = new Map<NodeId, Set<number>>();

  constructor(transfers: readonly Transfer[], limits: PullLimits) {
    const ids = Array.from({ length: NODES }, (_, i) => asNodeId(i + 1));
    this.#nodes = new Map(ids.map((node) => [node, new PullDispatcher(node, transfers, limits)]));
  }

  finish(random: SeededRandom): void {
    for (const node of this.#nodes.keys()) this.#tell(node, { type: 'started' });
    while (this.#underWay.length > 0) {
      const [[node, event]] = this.#underWay.splice(random.below(this.#underWay.length), 1) as [[NodeId, IOEvent]];
      this.#tell(node, event);
    }
  }

  get done(): boolean {
    return [...this.#nodes.values()].every((dispatcher) => dispatcher.done);
  }

  get kept(): number {
    return [...this.#kept.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #tell(node: NodeId, event: IOEvent): void {
    if (event.type === 'written') {
      this.#open.set(node, this.#open.get(node)! - event.transfer.bytes);
      this.written.push(`${event.transfer.parcel}>${node}`);
    }
    for (const effect of this.#nodes.get(node)!.step(event)) this.#perform(node, effect);
  }

  #perform(node: NodeId, effect: IOEffect): void {
    const kept = this.#kept.get(node) ?? new Set<number>();
    this.#kept.set(node, kept);
    switch (effect.type) {
      case 'ask': {
        const open = (this.#open.get(node) ?? 0) + effect.transfer.bytes;
        this.#open.set(node, open);
        this.mostOpen = Math.max(this.mostOpen, open);
        this.#underWay.push([effect.transfer.from, { type: 'asked', transfer: effect.transfer }]);
        return;
      }
      case 'read':
        this.reads.push(`${effect.parcel}@${node}`);
        this.#underWay.push([node, { type: 'read', node, parcel: effect.parcel }]);
        return;
      case 'keep':
        kept.add(effect.parcel);
        this.mostKept = Math.max(this.mostKept, kept.size);
        return;
      case 'forget':
        assert.ok(kept.delete(effect.parcel), 'what is forgotten was kept');
        return;
      case 'send':
        assert.ok(kept.has(effect.transfer.parcel), 'what is sent is in memory');
        this.#underWay.push([node, { type: 'sent', transfer: effect.transfer }]);
        this.#underWay.push([effect.transfer.to, { type: 'received', transfer: effect.transfer }]);
        return;
      case 'write':
        assert.ok(kept.has(effect.transfer.parcel), 'what is written is in memory');
        this.#underWay.push([node, { type: 'written', transfer: effect.transfer }]);
        return;
      case 'wait':
        assert.fail('a puller never waits for time');
    }
  }
}

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
    const run = new Run(transfers, limits);
    run.finish(random);
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
  const run = new Run(transfers, { windowBytes: 10, keepBytes: 0, depth: 1 });
  run.finish(random);
  assert.ok(run.done);
});

test('a parcel that is kept is read once for all that get it', (t) => {
  const transfers = planOf(someParcels(randomOf(t), { parcels: 60, nodes: NODES, bytes: 10 }));
  const run = new Run(transfers, { windowBytes: 40, keepBytes: Infinity, depth: 2 });
  run.finish(randomOf(t));
  assert.equal(new Set(run.reads).size, run.reads.length);
});

test('memory holds no more than what is under way and what it was told to keep', (t) => {
  const random = randomOf(t);
  const parcels = Array.from({ length: 100 }, (_, id): Parcel => {
    return { id, bytes: 10, holders: [asNodeId(1)], receivers: [2, 3, 4].map(asNodeId), safeCopies: 1 };
  });
  const run = new Run(planOf(parcels), { windowBytes: 20, keepBytes: 30, depth: 1 });
  run.finish(random);
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
