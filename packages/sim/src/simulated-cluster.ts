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
import { CLUSTER, SimulatedMachine } from './machine.ts';
import { PARAMETERS, type Scale } from './scale.ts';
import { SimulatedTime } from './simulated-time.ts';

export interface ClusterOptions {
  readonly seed: number;
  readonly nodes: number;
  /** Machines that may be given a place later; 0. */
  readonly spares?: number;
  readonly scale: Scale;
  readonly tell: (line: string) => void;
  readonly wrapGroups?: (groups: Groups) => Groups;
  readonly fate?: (operation: DiskOperation) => DiskFate;
}

/** Milliseconds between two nodes, at most. */
export const NEAR_MS = 1;

/**
 * A cluster of real nodes on simulated machines, and the one who sees them all. One seed decides everything that is not
 * decided by the nodes themselves.
 */
export class SimulatedCluster implements AsyncDisposable {
  readonly time = new SimulatedTime();
  readonly random: SeededRandom;
  readonly network: MemoryNetwork;
  readonly mapStore: MemoryMapStore;
  /** Spare ones too. */
  readonly allMachines: readonly SimulatedMachine[];
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
    const { nodes, spares = 0 } = options;
    this.allMachines = Array.from(
      { length: nodes + spares },
      (_, i) =>
        new SimulatedMachine(i + 1, i < nodes ? asNodeId(i + 1) : undefined, {
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
        name: CLUSTER,
        nodes: cluster.machines.map(({ node }) => ({ id: node, address: '' })),
        random: cluster.random,
        // more nodes than copies: more groups, so that some move
        groupBits: options.scale.groupBits + (options.nodes + (options.spares ?? 0) > 3 ? 1 : 0),
      }),
    );
    cluster.#map = await cluster.during(followMap(cluster.mapStore.connect(), cluster.clock, silentLog));
    for (let a = 1; a <= cluster.allMachines.length; a++) {
      for (let b = 1; b < a; b++) {
        cluster.network.delay(asNodeId(b), asNodeId(a), cluster.random.fraction() * NEAR_MS);
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

  /** Those that have a place in the cluster. */
  get machines(): readonly SimulatedMachine[] {
    return this.allMachines.filter(({ isPlaced }) => isPlaced);
  }

  /** The one that plays a node; none does while the one that will has not been told. */
  machine(node: NodeId): SimulatedMachine | undefined {
    return this.allMachines.find((machine) => machine.isPlaced && machine.node === node);
  }

  groups(): Iterable<GroupKey> {
    return allGroups(this.view.map);
  }

  get allServed(): boolean {
    for (const key of this.groups()) {
      const { primary } = this.view.group(key);
      const life = primary === undefined ? undefined : this.machine(primary)?.life;
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

  /** Runs the world until something holds. @throws Error naming it, and what is lacking, if it does not in time */
  async until(what: string, holds: () => boolean, limitMs: number, lack: () => string = () => ''): Promise<void> {
    await this.pass(limitMs, holds);
    if (!holds()) throw new Error(`not within ${limitMs} ms: ${what} ${lack()}`);
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
    for (const machine of this.allMachines) machine.crash('kill');
    await this.#map?.[Symbol.asyncDispose]();
    await this.mapStore[Symbol.asyncDispose]();
  }
}
