import assert from 'node:assert/strict';
import test from 'node:test';
import { asNodeId, ManualClock, type NodeId, WebdfsError } from '@webdfs/base';
import type { LocalMap, Transaction } from '@webdfs/cluster';
import { leaveGroup } from './damaged-tail.ts';
import { aView, KEY, ONE, THREE, TWO } from './step-bench.ts';

/** A map of one group that takes what it is given, or not. */
class Place {
  inSync: NodeId[];
  readonly told: string[] = [];
  isAway = false;

  constructor(inSync: NodeId[]) {
    this.inSync = inSync;
  }

  async leave(self: NodeId): Promise<boolean> {
    const group = (): ReturnType<typeof aView> => aView({ inSync: this.inSync, members: this.inSync });
    const view = { group, mapRevision: 4, revision: 10, override: () => undefined, sliceRevision: () => 3 };
    const map = {
      view: { ...view, live: () => ({ session: 5 }) },
      readThrough: async () => view,
      transact: async ({ write, compare }: Transaction) => {
        if (this.isAway) throw new WebdfsError('UNAVAILABLE', 'the map store does not answer');
        assert.ok(
          compare.some((each) => each.type === 'range'),
          'no mark is newer (M1)',
        );
        const [put] = write;
        assert.ok(put?.type === 'put');
        this.inSync = (JSON.parse(put.value) as { members: NodeId[] }).members;
        this.told.push(`members ${this.inSync.join()}`);
        return { done: true, revision: 11 };
      },
    } as unknown as LocalMap;
    const clock = new ManualClock();
    const store = { drop: async () => void this.told.push('drop') };
    const state = { isOver: false };
    const leaving = leaveGroup({ self, map, store, clock, isStopped: () => false }, KEY).finally(() => {
      state.isOver = true;
    });
    while (!state.isOver) {
      clock.advance(1_000);
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
    return await leaving;
  }
}

test('a group whose tail is damaged is left in the map before its copy here is dropped, by its primary too', async () => {
  const member = new Place([ONE, TWO, THREE]);
  assert.ok(await member.leave(TWO));
  assert.deepEqual(member.told, ['members 1,3', 'drop']);
  const primary = new Place([ONE, TWO, THREE]);
  assert.ok(await primary.leave(ONE));
  assert.deepEqual(primary.told, ['members 2,3', 'drop']);
});

test('a group is not left where the others would be too few, and nothing is dropped', async () => {
  const place = new Place([ONE, TWO]);
  assert.ok(!(await place.leave(TWO)));
  assert.deepEqual(place.told, []);
});

test('while the map store is away nothing is dropped', async () => {
  const place = new Place([asNodeId(1), TWO, THREE]);
  place.isAway = true;
  assert.ok(!(await place.leave(TWO)));
  assert.deepEqual(place.told, []);
});
