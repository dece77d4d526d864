import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { asNodeId, ManualClock, type NodeId, SeededRandom, silentLog, WebdfsError } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import {
  CONTROLLER_KEY,
  createCluster,
  type FollowedMap,
  followMap,
  formatDocument,
  liveKey,
  MAP_KEY,
  MemoryMapStore,
  proposeTarget,
  type RescaleRecord,
  rescalesIn,
  withRescale,
} from '@webdfs/cluster';
import { changeTopology } from '@webdfs/placement';
import { encodeStatusAnswer, type NodeStatus, serveGroupSizes, VERB } from '@webdfs/replica';
import type { Link, Message } from '@webdfs/wire';
import { AccountKeeper } from './account-keeper.ts';
import { plannedRescale } from './planned-rescale.ts';

const GROUP_BYTES = 1_000;
const SIZES = {
  bytesOf: () => GROUP_BYTES,
  ofPolicy: () => new Float64Array(4_096).fill(GROUP_BYTES),
  isWhole: true,
};
const TURNS = 50;

type Sized = Parameters<typeof serveGroupSizes>[0];

/** A map store with a cluster of three in it, and nodes that say of their meters what a test has them say. */
class Scene implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly store = new MemoryMapStore(this.clock);
  readonly received = new Map<NodeId, number>();
  saySizes = false;
  readonly #maps: FollowedMap[] = [];
  readonly #keepers: AccountKeeper[] = [];

  static async begin(seed: number): Promise<Scene> {
    const scene = new Scene();
    const nodes = [1, 2, 3].map((id) => ({ id: asNodeId(id), address: '' }));
    await createCluster(scene.store, { name: 'home', nodes, copies: 2, random: new SeededRandom(seed) });
    for (const id of [1, 2, 3, 4]) await scene.put(liveKey(asNodeId(id)), { pid: 1, startedMs: 0 });
    return scene;
  }

  async put(key: string, value: Parameters<typeof formatDocument>[0]): Promise<void> {
    await this.store.transact({ compare: [], write: [{ type: 'put', key, value: formatDocument(value) }] });
    await this.pass(0);
  }

  async elect(node: number): Promise<void> {
    await this.store.transact({ compare: [], write: [{ type: 'delete', key: CONTROLLER_KEY }] });
    await this.put(CONTROLLER_KEY, { node: asNodeId(node), session: 1 });
  }

  /** Time passes, and what it brings about. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    for (let i = 0; i < TURNS; i++) {
      await turn();
      this.clock.advance(0);
    }
  }

  async keeperOn(node: number): Promise<FollowedMap> {
    const map = await followMap(this.store, this.clock, silentLog);
    const access = { map, mapStore: this.store, link: (peer: NodeId) => this.#link(peer), clock: this.clock };
    this.#maps.push(map);
    this.#keepers.push(new AccountKeeper({ access, self: asNodeId(node), clock: this.clock, log: silentLog }));
    return map;
  }

  async record(): Promise<RescaleRecord> {
    return rescalesIn(await this.store.read())[0]!.record;
  }

  #link(node: NodeId): Link {
    const moves = { receivedBytes: this.received.get(node) ?? 0 };
    const status = { node, revision: 1, liveBytes: 0, objects: 0, blocks: 0, serving: 0, takingOver: 0, member: 0 };
    const call = async (verb: number, message: Message): Promise<unknown> => {
      if (verb === VERB.GROUP_SIZES && this.saySizes) {
        const store = { log: () => ({ bytes: GROUP_BYTES }) };
        return serveGroupSizes({ self: node, map: this.#maps[0]!, store } as unknown as Sized, message);
      }
      if (verb !== VERB.STATUS) throw new WebdfsError('UNAVAILABLE', 'this one says nothing of sizes');
      return encodeStatusAnswer({ ...status, catchUp: {}, counters: {}, moves } as unknown as NodeStatus);
    };
    return { call } as unknown as Link;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const keeper of this.#keepers) keeper[Symbol.dispose]();
    for (const map of this.#maps) await map[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }
}

test('the account goes on with the next controller, counts nothing twice, and ends with the target', async (t) => {
  await using scene = await Scene.begin(seedOf(t));
  await scene.elect(1);
  const map = await scene.keeperOn(1);
  await scene.keeperOn(2);
  const { view } = map;
  const target = changeTopology(view.map.settled, [{ type: 'add-nodes', subcluster: 1, count: 1, labels: {} }], {
    groupBits: view.map.groupBits,
  });
  const begin = plannedRescale(view, target, { copiesOf: () => 2, sizes: SIZES, command: 'cluster add', nowMs: 0 });
  await scene.store.transact(withRescale(proposeTarget(view, target), [], { begin }));
  await scene.pass(3_000);
  assert.equal((await scene.record()).moved.bytes, 0);

  scene.received.set(asNodeId(4), 700);
  await scene.pass(3_000);
  assert.equal((await scene.record()).moved.bytes, 700);

  await scene.elect(2);
  scene.received.set(asNodeId(4), 900);
  await scene.pass(6_000);
  assert.equal((await scene.record()).moved.bytes, 900);
  assert.equal((await scene.record()).outcome, undefined, 'the target is not reached');

  scene.received.set(asNodeId(4), 1_000);
  const { target: _, ...rest } = map.view.map;
  await scene.put(MAP_KEY, { ...rest, settled: target });
  await scene.pass(3_000);
  const { outcome, moved, planned, open, endedMs } = await scene.record();
  assert.equal(outcome, 'settled');
  assert.equal(moved.bytes, 1_000);
  assert.equal(moved.groups, planned.groups);
  assert.equal(open, undefined);
  assert.ok(endedMs !== undefined && endedMs >= 12_000);
});

test('a change that nobody could size is sized when all the nodes can say, and not before', async (t) => {
  await using scene = await Scene.begin(seedOf(t));
  const map = await scene.keeperOn(1);
  const { view } = map;
  const target = changeTopology(view.map.settled, [{ type: 'add-nodes', subcluster: 1, count: 1, labels: {} }], {
    groupBits: view.map.groupBits,
  });
  const begin = plannedRescale(view, target, { copiesOf: () => 2, sizes: undefined, command: 'up', nowMs: 0 });
  assert.equal(begin.planned.bytes, undefined);
  assert.ok(begin.planned.copies > 0);
  await scene.store.transact(withRescale(proposeTarget(view, target), [], { begin }));
  await scene.elect(1);
  await scene.pass(3_000);
  assert.equal((await scene.record()).planned.bytes, undefined, 'nobody says anything');
  scene.saySizes = true;
  await scene.pass(6_000);
  const { planned } = await scene.record();
  assert.equal(planned.bytes, begin.planned.copies * GROUP_BYTES);
  assert.equal(planned.copies, begin.planned.copies);
});
