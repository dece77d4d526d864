import {
  asNodeId,
  type GroupKey,
  type Log,
  type NodeId,
  type Revision,
  SeededRandom,
  silentLog,
  sleep,
  systemClock,
  WebdfsError,
} from '@webdfs/base';
import { GroupRouter, type RouterLimits } from '@webdfs/client';
import {
  atGoal,
  createCluster,
  downKey,
  FIRST_POLICY,
  type FollowedMap,
  followMap,
  formatDocument,
  liveKey,
  MAP_KEY,
  type MapView,
  MemoryMapStore,
  proposeTarget,
  type Transaction,
} from '@webdfs/cluster';
import { changeTopology, type TopologyChange } from '@webdfs/placement';
import {
  type GarbageLimits,
  type LeftoverLimits,
  ReplicaNode,
  type ReplicaParameters,
  type ScrubLimits,
} from '@webdfs/replica';
import type { Store } from '@webdfs/store';
import { MemoryNetwork, type Transport } from '@webdfs/wire';

/** Where a node's store comes from, and what happens to it when the node is killed. */
export interface StoreHouse {
  open(node: NodeId): Promise<Store>;
  /** The process died: what was not synced may be lost. */
  crash(node: NodeId): Promise<void>;
}

export interface InProcessOptions {
  readonly stores: StoreHouse;
  readonly nodes?: number;
  /** 2^groupBits groups; 5. */
  readonly groupBits?: number;
  readonly parameters?: Partial<ReplicaParameters>;
  readonly garbage?: Partial<GarbageLimits>;
  readonly leftovers?: Partial<LeftoverLimits>;
  readonly scrub?: Partial<ScrubLimits>;
  readonly log?: Log;
}

export const POLICY = FIRST_POLICY;

/** One node while it runs. */
export interface RunningNode {
  readonly id: NodeId;
  readonly store: Store;
  readonly replica: ReplicaNode;
  readonly map: FollowedMap;
  readonly transport: Transport;
  readonly lease: { session: Revision; held: boolean };
}

/**
 * A whole cluster in one process: real engines, stores and transports; the map store is one in memory. The builder plays
 * the controller: it marks the nodes it kills.
 */
export class InProcessCluster implements AsyncDisposable {
  readonly running = new Map<NodeId, RunningNode>();
  readonly #options: InProcessOptions;
  readonly #mapStore = new MemoryMapStore(systemClock);
  readonly #network = new MemoryNetwork({ clock: systemClock });
  readonly #log: Log;
  readonly #runs = new Map<NodeId, number>();

  private constructor(options: InProcessOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
  }

  /** A cluster whose groups are all served. */
  static async start(options: InProcessOptions): Promise<InProcessCluster> {
    const cluster = new InProcessCluster(options);
    const ids = Array.from({ length: options.nodes ?? 3 }, (_, i) => asNodeId(i + 1));
    await createCluster(cluster.#mapStore, {
      name: 'in-process',
      nodes: ids.map((id) => ({ id, address: cluster.#network.address(id), disk: `disk of ${id}` })),
      random: new SeededRandom(7),
      groupBits: options.groupBits ?? 5,
    });
    for (const id of ids) await cluster.begin(id);
    await cluster.whenServed();
    return cluster;
  }

  node(id: NodeId | number): RunningNode {
    const node = this.running.get(asNodeId(id));
    if (node === undefined) throw new WebdfsError('NOT_FOUND', `node ${id} does not run`);
    return node;
  }

  router(at: NodeId | number, limits: Partial<RouterLimits> = {}): GroupRouter {
    const { map, transport, id } = this.node(at);
    const link = (node: NodeId): ReturnType<Transport['link']> => transport.link(node);
    const random = new SeededRandom(Number(id) * 101);
    return new GroupRouter({ map, link, self: id, clock: systemClock, random, log: this.#log }, limits);
  }

  /** A node begins, with what its disk holds. */
  async begin(id: NodeId): Promise<RunningNode> {
    const { parameters, garbage, leftovers, scrub, stores } = this.#options;
    const run = (this.#runs.get(id) ?? 0) + 1;
    this.#runs.set(id, run);
    const store = await stores.open(id);
    const map = await followMap(this.#mapStore, systemClock, this.#log);
    const lease = { session: 0, held: true, holds: () => lease.held };
    const links = new Map<NodeId, Transport>();
    const replica = new ReplicaNode({
      self: id,
      pid: run,
      store,
      map,
      lease,
      link: (node) => links.get(id)!.link(node),
      clock: systemClock,
      random: new SeededRandom(Number(id) * 1_000 + run),
      log: this.#log,
      ...(parameters && { parameters }),
      ...(garbage && { garbage }),
      ...(leftovers && { leftovers }),
      ...(scrub && { scrub }),
    });
    const transport = this.#network.open(id, replica.handlers);
    links.set(id, transport);
    transport.setPeers(new Map(map.view.nodes().map((node) => [node, this.#network.address(node)])));
    lease.session = await this.#put(liveKey(id), formatDocument({ pid: run, startedMs: systemClock.now() }));
    await map.readThrough(lease.session);
    const node = { id, store, replica, map, transport, lease };
    this.running.set(id, node);
    await replica.start();
    return node;
  }

  /** The nodes written off, as the controller does once they have been away for long: goals change. */
  async writeOff(out: readonly number[]): Promise<void> {
    await this.transact(({ map, mapRevision }) => {
      const value = formatDocument({ ...map, out: out.map(asNodeId) });
      return {
        compare: [{ type: 'modified', key: MAP_KEY, is: mapRevision }],
        write: [{ type: 'put', key: MAP_KEY, value }],
      };
    });
  }

  /** Another target, from the topology that is settled; nodes that it adds can begin from then on. */
  async retarget(...changes: TopologyChange[]): Promise<void> {
    await this.transact((view) => {
      const { settled, groupBits } = view.map;
      return proposeTarget(view, changeTopology(settled, changes, { groupBits }));
    });
    const { view } = this.node(this.running.keys().next().value!).map;
    const peers = new Map(view.nodes().map((node) => [node, this.#network.address(node)]));
    for (const { transport } of this.running.values()) transport.setPeers(peers);
  }

  /** Carries out what is proposed from the newest map, and lets all nodes see it. */
  async transact(propose: (view: MapView) => Transaction): Promise<void> {
    const [anyone] = this.running.values();
    for (;;) {
      const view = await anyone!.map.readFresh();
      const { done, revision } = await this.#mapStore.transact(propose(view));
      if (!done) continue;
      await Promise.all([...this.running.values()].map(({ map }) => map.readThrough(revision)));
      return;
    }
  }

  /** SIGKILL, noticed at once: the session ends and the node is marked. */
  async kill(id: NodeId | number): Promise<void> {
    const node = this.node(id);
    this.running.delete(node.id);
    node.lease.held = false;
    node.replica.stop();
    await node.transport[Symbol.asyncDispose]();
    await node.map[Symbol.asyncDispose]();
    await this.#options.stores.crash(node.id);
    const down = formatDocument({ reason: 'killed', session: node.lease.session });
    await this.#mapStore.transact({
      compare: [],
      write: [
        { type: 'delete', key: liveKey(node.id) },
        { type: 'put', key: downKey(node.id), value: down },
      ],
    });
  }

  async #put(key: string, value: string): Promise<Revision> {
    const { revision } = await this.#mapStore.transact({ compare: [], write: [{ type: 'put', key, value }] });
    return revision;
  }

  *groups(): Generator<GroupKey> {
    const view = this.#anyView();
    for (let group = 0; group < 2 ** view.map.groupBits; group++)
      yield { policy: POLICY, group: group as GroupKey['group'] };
  }

  #anyView(): MapView {
    return [...this.running.values()][0]!.map.view;
  }

  /** Waits until every group is served by its primary. */
  async whenServed(): Promise<void> {
    await this.until('all groups are served', () => {
      const view = this.#anyView();
      for (const key of this.groups()) {
        const { primary } = view.group(key);
        const node = primary === undefined ? undefined : this.running.get(primary);
        if (node === undefined || node.replica.engine.serving(key) === 0) return false;
      }
      return true;
    });
  }

  /** Waits until every group has all its members. */
  async whenWhole(): Promise<void> {
    await this.until('all groups are whole', () => {
      const view = this.#anyView();
      for (const key of this.groups()) if (view.group(key).health !== 'whole') return false;
      return true;
    });
    await this.whenServed();
  }

  /** Waits until every group has the members that it should have. */
  async whenAtGoal(limitMs?: number): Promise<void> {
    await this.until('all groups are where they should be', () => this.groupsToMove() === 0, limitMs);
    await this.whenServed();
  }

  /** Groups that are not yet where they should be. */
  groupsToMove(): number {
    const view = this.#anyView();
    let count = 0;
    for (const key of this.groups()) if (!atGoal(view.group(key))) count++;
    return count;
  }

  /** Waits for a state of the cluster; a state that never comes is told with its name. */
  async until(what: string, holds: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
    const end = systemClock.monotonic() + limitMs;
    while (!(await holds())) {
      if (systemClock.monotonic() > end) throw new WebdfsError('TIMEOUT', `not within ${limitMs} ms: ${what}`);
      await sleep(systemClock, 5);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const node of this.running.values()) {
      node.replica.stop();
      await node.transport[Symbol.asyncDispose]();
      await node.map[Symbol.asyncDispose]();
      await node.store[Symbol.asyncDispose]();
    }
    this.running.clear();
    await this.#mapStore[Symbol.asyncDispose]();
  }
}
