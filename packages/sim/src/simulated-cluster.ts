import { asNodeId, type GroupKey, type NodeId, SeededRandom } from '@webdfs/base';
import type { DiskFate, DiskOperation } from '@webdfs/base/testing';
import type { Groups } from '@webdfs/client';
import {
  allGroups,
  createCluster,
  type FollowedMap,
  followMap,
  type MapSnapshot,
  MemoryMapStore,
} from '@webdfs/cluster';
import { silentLog } from '@webdfs/base';
import { MemoryNetwork } from '@webdfs/wire';
import { MachineClock } from './machine-clock.ts';
import { SimulatedMachine } from './machine.ts';
import { PARAMETERS, type Scale } from './scale.ts';
import { SimulatedTime } from './simulated-time.ts';

export interface ClusterOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly scale: Scale;
  readonly tell: (line: string) => void;
  readonly wrapGroups?: (groups: Groups) => Groups;
  readonly fate?: (operation: DiskOperation) => DiskFate;
}

/** Milliseconds between two nodes, at most. */
const NEAR_MS = 1;

/**
 * A cluster of real nodes on simulated machines, and the one who sees them all. One seed decides everything that is not
 * decided by the nodes themselves.
 */
export class SimulatedCluster implements AsyncDisposable {
  readonly time = new SimulatedTime();
  readonly random: SeededRandom;
  readonly network: MemoryNetwork;
  readonly mapStore: MemoryMapStore;
  readonly machines: readonly SimulatedMachine[];
  readonly tell: (line: string) => void;
  /** The world's own clock: that of the map store, and of clients. */
  readonly clock: MachineClock;
  /** Called between any two happenings. */
  watch: () => void = () => undefined;
  #map: FollowedMap | undefined;
  #broken: { readonly error: unknown } | undefined;

  private constructor(options: ClusterOptions) {
    this.random = new SeededRandom(options.seed);
    this.tell = options.tell;
    const { time } = this;
    this.clock = new MachineClock(time, 0, 0);
    this.network = new MemoryNetwork({ clock: this.clock, random: new SeededRandom(this.random.uint32()) });
    this.mapStore = new MemoryMapStore(this.clock, { random: new SeededRandom(this.random.uint32()) });
    this.machines = Array.from(
      { length: options.nodes },
      (_, i) =>
        new SimulatedMachine(asNodeId(i + 1), {
          time,
          network: this.network,
          mapStore: this.mapStore,
          parameters: PARAMETERS,
          scale: options.scale,
          random: this.random,
          tell: options.tell,
          broken: (error) => void (this.#broken ??= { error }),
          ...(options.wrapGroups && { wrapGroups: options.wrapGroups }),
          ...(options.fate && { fate: options.fate }),
        }),
    );
  }

  /** A cluster whose groups are all served by machines that are well. */
  static async start(options: ClusterOptions): Promise<SimulatedCluster> {
    const cluster = new SimulatedCluster(options);
    await cluster.during(
      createCluster(cluster.mapStore, {
        name: 'simulated',
        nodes: cluster.machines.map(({ node }) => ({ id: node, address: '' })),
        random: cluster.random,
        // more nodes than copies: more groups, so that some move
        groupBits: options.scale.groupBits + (options.nodes > 3 ? 1 : 0),
      }),
    );
    cluster.#map = await cluster.during(followMap(cluster.mapStore.connect(), cluster.clock, silentLog));
    for (const { node } of cluster.machines) {
      for (const { node: other } of cluster.machines) {
        if (node < other) cluster.network.delay(node, other, cluster.random.fraction() * NEAR_MS);
      }
    }
    for (const machine of cluster.machines) machine.start();
    await cluster.until('all groups are served', () => cluster.allServed, 60_000);
    return cluster;
  }

  /** The newest map. */
  get view(): MapSnapshot {
    return this.#map!.view;
  }

  onMapChange(listener: (view: MapSnapshot) => void): void {
    this.#map!.onChange(() => listener(this.view));
  }

  machine(node: NodeId): SimulatedMachine {
    return this.machines[Number(node) - 1]!;
  }

  groups(): Iterable<GroupKey> {
    return allGroups(this.view.map);
  }

  get allServed(): boolean {
    for (const key of this.groups()) {
      const { primary } = this.view.group(key);
      const life = primary === undefined ? undefined : this.machine(primary).life;
      if (life === undefined || life.storage.replica.engine.serving(key) === 0) return false;
    }
    return true;
  }

  /** Runs the world for a while. @throws what broke */
  async pass(ms: number, isOver: () => boolean = () => false): Promise<void> {
    await this.time.run(this.time.now + ms, () => {
      this.watch();
      return this.#broken !== undefined || isOver();
    });
    if (this.#broken !== undefined) throw this.#broken.error;
  }

  /** Runs the world until something holds. @throws Error naming it, if it does not in time */
  async until(what: string, holds: () => boolean, limitMs: number): Promise<void> {
    await this.pass(limitMs, holds);
    if (!holds()) throw new Error(`not within ${limitMs} ms: ${what}`);
  }

  /** Runs the world until a promise settles. */
  async during<T>(work: Promise<T>, limitMs = 60_000): Promise<T> {
    const state = { done: false };
    const settle = (): void => void (state.done = true);
    work.then(settle, settle);
    await new Promise((resolve) => void setImmediate(resolve));
    await this.until('an answer', () => state.done, limitMs);
    return await work;
  }

  broken(error: unknown): void {
    this.#broken ??= { error };
  }

  /** The world ends: every process at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const machine of this.machines) machine.crash('kill');
    await this.#map?.[Symbol.asyncDispose]();
    await this.mapStore[Symbol.asyncDispose]();
  }
}
