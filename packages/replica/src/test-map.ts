import { asNodeId, type Clock, type NodeId, SeededRandom, silentLog } from '@webdfs/base';
import {
  createCluster,
  downKey,
  type FollowedMap,
  followMap,
  formatDocument,
  liveKey,
  MemoryMapStore,
  proposeTarget,
  type Transaction,
  type Write,
} from '@webdfs/cluster';
import { changeTopology, type TopologyChange } from '@webdfs/placement';

const BATCH = 100;

/** A map without a cluster behind it, for tests of what follows from a map alone. */
export class TestMap implements AsyncDisposable {
  readonly store: MemoryMapStore;
  readonly map: FollowedMap;

  private constructor(store: MemoryMapStore, map: FollowedMap) {
    this.store = store;
    this.map = map;
  }

  /** Nodes 1, 2, … of a new cluster, all of which run. */
  static async of(nodes: number, options: { clock: Clock; groupBits: number }): Promise<TestMap> {
    const { clock, groupBits } = options;
    const store = new MemoryMapStore(clock);
    const ids = Array.from({ length: nodes }, (_, i) => asNodeId(i + 1));
    const random = new SeededRandom(3);
    await createCluster(store, {
      name: 'test',
      random,
      groupBits,
      nodes: ids.map((id) => ({ id, address: `node-${id}` })),
    });
    const test = new TestMap(store, await followMap(store, clock, silentLog));
    await test.live(ids);
    return test;
  }

  async transact(transaction: Transaction): Promise<void> {
    const { revision } = await this.map.transact(transaction);
    await this.map.readThrough(revision);
  }

  async live(nodes: readonly NodeId[]): Promise<void> {
    const value = formatDocument({ pid: 1, startedMs: 0 });
    for (let at = 0; at < nodes.length; at += BATCH) {
      const write = nodes.slice(at, at + BATCH).map((node): Write => ({ type: 'put', key: liveKey(node), value }));
      await this.transact({ compare: [], write });
    }
  }

  /** The controller's judgement of one that died. */
  async lost(node: NodeId): Promise<void> {
    const down = formatDocument({ reason: 'lost', session: this.map.view.live(node)?.session ?? 0 });
    await this.transact({
      compare: [],
      write: [
        { type: 'delete', key: liveKey(node) },
        { type: 'put', key: downKey(node), value: down },
      ],
    });
  }

  async change(change: TopologyChange): Promise<void> {
    const { view } = this.map;
    const { settled, groupBits } = view.map;
    await this.transact(proposeTarget(view, changeTopology(settled, [change], { groupBits })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.map[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }
}
