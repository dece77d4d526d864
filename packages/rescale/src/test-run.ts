import assert from 'node:assert/strict';
import { asNodeId, type NodeId, type SeededRandom } from '@webdfs/base';
import type { IOEffect, IOEvent } from './io-step.ts';
import type { Transfer } from './parcel.ts';
import { PullDispatcher, type PullLimits } from './pull-dispatcher.ts';

/** Nodes of a test run, with ids from 1 on. */
export const NODES = 6;

/** Carries a plan out for tests; whatever is under way ends in a random order. */
export class TestRun {
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

  /** @param enough  stops when so many transfers are written */
  run(random: SeededRandom, enough = Infinity): void {
    for (const node of this.#nodes.keys()) this.#tell(node, { type: 'started' });
    while (this.#underWay.length > 0 && this.written.length < enough) {
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
