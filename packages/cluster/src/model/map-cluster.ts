import assert from 'node:assert/strict';
import {
  asGroupId,
  asNodeId,
  type Clock,
  ManualClock,
  type NodeId,
  SeededRandom,
  silentLog,
  WebdfsError,
} from '@webdfs/base';
import { type RunningController, runController } from '../controller-loop.ts';
import { createCluster, FIRST_POLICY } from '../create-cluster.ts';
import { type FollowedMap, followMap } from '../local-map.ts';
import type { Change, Lease, MapContents, MapStore, Transaction } from '../map-store.ts';
import type { GroupView } from '../map.ts';
import { MemoryMapStore } from '../memory-map-store.ts';
import { NodeSession } from '../node-session.ts';
import { parametersWith } from '../parameters.ts';
import { propose, together } from '../propose.ts';

/** A way to a map store that can be cut, as a whole or only its watch. */
class CutStore implements MapStore {
  readonly #store: MapStore;
  reachable = true;
  watching = true;
  /** Leases are granted for so many times what was asked. */
  generosity = 1;

  constructor(store: MapStore) {
    this.#store = store;
  }

  async #through<T>(work: () => Promise<T>): Promise<T> {
    if (!this.reachable) throw new WebdfsError('UNAVAILABLE', 'cut off');
    return await work();
  }

  read(): Promise<MapContents> {
    return this.#through(() => this.#store.read());
  }

  transact(transaction: Transaction): Promise<{ done: boolean; revision: number }> {
    return this.#through(() => this.#store.transact(transaction));
  }

  async *watch(after: number, signal: AbortSignal): AsyncIterable<Change> {
    for await (const change of this.#store.watch(after, signal)) {
      if (!this.reachable || !this.watching) throw new WebdfsError('UNAVAILABLE', 'cut off');
      yield change;
    }
  }

  fresh(seen: number): Promise<number> {
    return this.#through(() => this.#store.fresh(seen));
  }

  async lease(ttlMs: number): Promise<Lease> {
    const lease = await this.#through(() => this.#store.lease(ttlMs * this.generosity));
    return {
      id: lease.id,
      ttlMs: lease.ttlMs,
      renew: () => this.#through(() => lease.renew()),
      end: () => this.#through(() => lease.end()),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** A clock that can be stopped for one node, as SIGSTOP does, or set. */
class NodeClock implements Clock {
  readonly #clock: ManualClock;
  stopped = false;
  ahead = 0;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now() + this.ahead;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  after(ms: number, action: () => void): { cancel(): void } {
    return this.#clock.after(ms, () => {
      if (!this.stopped) action();
    });
  }

  soon(action: () => void): void {
    this.#clock.soon(action);
  }
}

interface Disk {
  id: string;
  memory: Uint8Array | undefined;
  stalled: boolean;
}

interface RunningNode {
  readonly id: NodeId;
  readonly store: CutStore;
  readonly clock: NodeClock;
  readonly map: FollowedMap;
  readonly session: NodeSession;
  readonly controller: RunningController;
}

/** What nodes of a `MapCluster` run by. */
export const parameters = parametersWith({ outAfterMs: 30_000 });
const GROUP_BITS = 7;

/** A cluster of nodes that only keep the map: no data, all else as it runs, over a clock moved by hand. */
export class MapCluster {
  readonly clock = new ManualClock();
  readonly store = new MemoryMapStore(this.clock);
  readonly disks = new Map<NodeId, Disk>();
  readonly running = new Map<NodeId, RunningNode>();
  /** Processes that were killed. */
  readonly gone = new Set<number>();
  #pid = 100;

  static async of(count: number, copies = 3): Promise<MapCluster> {
    const cluster = new MapCluster();
    const nodes = Array.from({ length: count }, (_, i) => ({ id: asNodeId(i + 1), address: `host:${i + 1}` }));
    await createCluster(cluster.store, {
      name: 'test',
      nodes,
      copies,
      random: new SeededRandom(5),
      groupBits: GROUP_BITS,
    });
    for (const { id } of nodes) cluster.disks.set(id, { id: `disk ${id}`, memory: undefined, stalled: false });
    for (const { id } of nodes) await cluster.start(id);
    await cluster.pass(200);
    return cluster;
  }

  async start(id: NodeId): Promise<RunningNode> {
    const clock = new NodeClock(this.clock);
    const store = new CutStore(this.store.connect());
    const disk = this.disks.get(id)!;
    const map = await followMap(store, clock, silentLog);
    this.#pid++;
    const own = { pid: this.#pid, start: '1', boot: 'b' };
    const starting = NodeSession.start({
      node: id,
      address: `host:${id}`,
      disk: disk.id,
      store,
      map,
      clock,
      log: silentLog,
      parameters,
      processes: { own: async () => own, gone: async ({ pid }) => this.gone.has(pid) },
      memory: {
        load: async () => disk.memory,
        save: async (bytes) => {
          if (disk.stalled) await new Promise(() => undefined);
          disk.memory = bytes;
        },
      },
    });
    const session = await this.until(starting);
    const controller = runController({
      node: id,
      session: () => session.session,
      renewedMs: () => session.renewedMs,
      store,
      map,
      clock,
      log: silentLog,
      parameters,
    });
    const node = { id, store, clock, map, session, controller };
    this.running.set(id, node);
    return node;
  }

  /** Lets time pass until a promise settles. */
  async until<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = work.finally(() => {
      settled = true;
    });
    done.catch(() => undefined);
    for (let i = 0; i < 2_000; i++) {
      if (settled) break;
      await this.pass(10);
    }
    return await done;
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 10) {
      this.clock.advance(Math.min(10, left));
      for (let i = 0; i < 4; i++) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** As SIGKILL: nothing is said to anybody. `noticed`: its parent ends its leases at once. */
  async kill(id: NodeId, noticed = false): Promise<void> {
    const node = this.running.get(id)!;
    node.store.reachable = false;
    node.clock.stopped = true;
    this.running.delete(id);
    const live = node.map.view.live(id);
    this.gone.add(live?.info.pid ?? 0);
    if (noticed) {
      // as `endSession` of the embedded store: the key goes
      await this.store.transact({ compare: [], write: [{ type: 'delete', key: `live/${id}` }] });
    }
  }

  node(id: number): RunningNode {
    return this.running.get(asNodeId(id))!;
  }

  views(of: number): GroupView[] {
    const { view } = this.node(of).map;
    return Array.from({ length: 2 ** GROUP_BITS }, (_, group) =>
      view.group({ policy: FIRST_POLICY, group: asGroupId(group) }),
    );
  }

  holders(): number[] {
    return [...this.running.values()].filter(({ session }) => session.holds()).map(({ id }) => id);
  }

  controllers(): number[] {
    return [...this.running.values()].filter(({ controller }) => controller.elected).map(({ id }) => id);
  }

  /** What primaries would do: take every live node of the goal back, as if it had caught up. */
  async rejoin(as: number): Promise<void> {
    const { view } = this.node(as).map;
    const proposals = [];
    for (let group = 0; group < 2 ** GROUP_BITS; group++) {
      const key = { policy: FIRST_POLICY, group: asGroupId(group) };
      const state = view.group(key);
      const missing = state.goal.filter((node) => !state.inSync.includes(node) && view.live(node) !== undefined);
      if (missing.length === 0) continue;
      const learners = missing.map((node) => ({ node, session: view.live(node)!.session }));
      proposals.push(propose(view, key, { type: 'join', learners }));
    }
    for (const { transaction } of together(proposals)) assert.ok((await this.store.transact(transaction)).done);
    await this.pass(50);
  }

  /** As a node does that is told to stop. */
  async stop(id: NodeId): Promise<void> {
    const { session, controller, map } = this.running.get(id)!;
    await controller[Symbol.asyncDispose]();
    await session[Symbol.asyncDispose]();
    await map[Symbol.asyncDispose]();
    this.running.delete(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of this.running.keys()) await this.stop(id);
    await this.store[Symbol.asyncDispose]();
  }
}
