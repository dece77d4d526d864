import {
  assert,
  type Clock,
  type Log,
  makeLog,
  messageOf,
  type NodeId,
  SeededRandom,
  silentLog,
  toHex,
} from '@webdfs/base';
import { type Crash, type DiskFate, type DiskOperation, SimulatedDisk } from '@webdfs/base/testing';
import { type Groups, GroupRouter, ObjectLayer } from '@webdfs/client';
import {
  type ClusterParameters,
  FIRST_POLICY,
  type MapStore,
  type MemoryMapStore,
  type ProcessMark,
  takePlace,
} from '@webdfs/cluster';
import { announceBucket, BUCKET_CHANGED, decodeBucketChanged, StorageNode } from '@webdfs/server';
import { MemoryLock, SortedIndexHouse } from '@webdfs/store';
import { type Link, type MemoryNetwork, NO_ATTACHMENT } from '@webdfs/wire';
import { MachineClock } from './machine-clock.ts';
import { MapAccess, type MapRoad } from './map-access.ts';
import type { Scale } from './scale.ts';
import type { SimulatedTime } from './simulated-time.ts';

const FOLDER = '/data/node';
/** The cluster's name. */
export const CLUSTER = 'simulated';

/** What an operation of a disk takes, and a way to or from the map store, at most, where all is well. */
export const DISK_MS = 1;
export const MAP_MS = 2;

/** One process on a machine: a node of the cluster with its gateway's object layer. */
export interface Life {
  readonly number: number;
  readonly clock: Clock & { end(): void };
  readonly storage: StorageNode;
  readonly objects: ObjectLayer;
  /** Resolves when this process is no more. */
  readonly ended: Promise<void>;
}

/** A process that has begun and may not have come up yet. */
interface Process {
  readonly number: number;
  readonly clock: Clock & { end(): void };
  readonly ended: PromiseWithResolvers<void>;
  /** Ends what waits for a place in the cluster. */
  readonly gone: AbortController;
  over: boolean;
  life: Life | undefined;
}

export interface MachineSeams {
  readonly time: SimulatedTime;
  readonly network: MemoryNetwork;
  readonly mapStore: MemoryMapStore;
  readonly parameters: ClusterParameters;
  readonly scale: Scale;
  readonly random: SeededRandom;
  /** A line of the transcript. */
  readonly tell: (line: string) => void;
  /** Something of ours has broken: the run has failed. */
  readonly broken: (error: unknown) => void;
  /** Tests of the simulator break things here. */
  readonly wrapGroups?: (groups: Groups) => Groups;
  readonly fate?: (operation: DiskOperation) => DiskFate;
}

/**
 * One machine: clock, disk, a road to the map store, and a process of the real server while one runs. It plays the node
 * whose place it has; a spare one has none until an operator gives its folder one.
 */
export class SimulatedMachine {
  /** 1 and up; of no meaning to the cluster. */
  readonly number: number;
  readonly clock: MachineClock;
  readonly road: MapRoad = { requestsLost: false, answersLost: false, watchStuck: false, latencyMs: MAP_MS };
  /** What an operation of the disk takes, at most. */
  diskMs = DISK_MS;
  disk: SimulatedDisk;
  /** What becomes of disk operations; undefined: they work. */
  fate: ((operation: DiskOperation) => DiskFate) | undefined;
  /** Whether it is to run: it is switched on again when its process has ended. */
  isWanted: boolean;
  #place: NodeId | undefined;
  #storeId: string | undefined;
  readonly #seams: MachineSeams;
  readonly #random: SeededRandom;
  readonly #locks = new MemoryLock();
  #process: Process | undefined;
  #processes = 0;
  #boots = 1;
  #paused = false;

  constructor(number: number, place: NodeId | undefined, seams: MachineSeams) {
    this.number = number;
    this.#place = place;
    this.isWanted = place !== undefined;
    this.#seams = seams;
    this.#random = new SeededRandom(seams.random.uint32());
    this.clock = new MachineClock(seams.time, number, this.#random.below(2_000) - 1_000);
    this.disk = this.#newDisk(this.#random.uint32());
  }

  /** The node that it plays. */
  get node(): NodeId {
    assert(this.#place !== undefined, 'a machine in the cluster has a place');
    return this.#place;
  }

  /** Under which a spare machine's folder asks for its place; undefined before it did. */
  get storeId(): string | undefined {
    return this.#storeId;
  }

  get isPlaced(): boolean {
    return this.#place !== undefined;
  }

  #name(): string {
    return this.#place === undefined ? `machine ${this.number}` : `node ${this.#place}`;
  }

  #newDisk(seed: number): SimulatedDisk {
    const latencyMs = (): number => this.diskMs;
    return new SimulatedDisk({ seed, clock: this.clock, latencyMs, totalBytes: this.#seams.scale.diskBytes });
  }

  /** The process that serves; undefined while none does. */
  get life(): Life | undefined {
    return this.#process?.life;
  }

  get isOn(): boolean {
    return this.#process !== undefined;
  }

  get isPaused(): boolean {
    return this.#paused;
  }

  // ---- processes ----

  /** A process begins; it serves once its store is open and it has a lease. */
  start(): void {
    assert(this.#process === undefined, 'one process of a node runs on its machine');
    this.#processes += 1;
    const process: Process = {
      number: this.#processes,
      clock: this.clock.life(),
      ended: Promise.withResolvers<void>(),
      gone: new AbortController(),
      over: false,
      life: undefined,
    };
    this.#process = process;
    const { disk } = this;
    disk.onOperation = (operation) => {
      const { time } = this.#seams;
      time.noteText(operation.action);
      time.note(operation.bytes + operation.offset);
      return this.#seams.fate?.(operation) ?? this.fate?.(operation);
    };
    void this.#begin(process, disk).catch((error: unknown) => this.#failed(process, error));
  }

  async #begin(process: Process, disk: SimulatedDisk): Promise<void> {
    const { mapStore, network, parameters, scale } = this.#seams;
    const random = new SeededRandom(this.#random.uint32());
    const { clock } = process;
    const log = this.#log(process);
    const access: MapStore = new MapAccess(mapStore.connect(), this.road, clock, random);
    await disk.makeFolder(FOLDER);
    await disk.syncFolder('/data');
    await disk.syncFolder('/');
    const node = this.#place ?? (await this.#ask(access, process, random));
    if (process.over) return;
    const storage = await StorageNode.open({
      node,
      folder: FOLDER,
      mapStore: access,
      clusterSecret: '',
      host: '',
      port: 0,
      door: '',
      pid: process.number,
      ...(this.#storeId !== undefined && { storeId: this.#storeId }),
      disk,
      index: new SortedIndexHouse({ disk, random }),
      lock: this.#locks,
      processes: {
        own: () => Promise.resolve(this.#mark(process)),
        gone: (mark) => Promise.resolve(!this.#runs(mark)),
      },
      clock,
      random,
      log,
      parameters,
      onFatal: (error) => this.#failed(process, error),
      openTransport: (handlers) => network.open(node, handlers, { clock, random, log }),
      store: scale.store,
      replica: scale.replica,
    });
    if (process.over) return;
    const objects = this.#openObjects(storage, { clock, random, log });
    process.life = { number: process.number, clock, storage, objects, ended: process.ended.promise };
    this.#seams.tell(`node ${node}: serves, process ${process.number}`);
  }

  /** As `webdfs node --join` does: the folder waits until an operator has given it a place. */
  async #ask(store: MapStore, process: Process, random: SeededRandom): Promise<NodeId> {
    this.#storeId ??= toHex(random.bytes(16));
    const node = await takePlace({
      store,
      name: CLUSTER,
      storeId: this.#storeId,
      joining: { labels: {}, weight: 1 },
      secret: '',
      clock: process.clock,
      random,
      log: this.#log(process),
      signal: process.gone.signal,
    });
    if (!process.over) {
      this.#place = node;
      this.#seams.tell(`machine ${this.number} is node ${node} now`);
    }
    return node;
  }

  #openObjects(storage: StorageNode, seams: { clock: Clock; random: SeededRandom; log: Log }): ObjectLayer {
    const { map } = storage;
    const link = (peer: NodeId): Link => storage.link(peer);
    const self = this.node;
    const router = new GroupRouter({ map, link, self, ...seams });
    const groups = this.#seams.wrapGroups?.(router) ?? router;
    const announce = (name: string): Promise<boolean> => announceBucket(name, { self, map, link });
    const { sizes } = this.#seams.scale;
    const objects = new ObjectLayer({ groups, policy: FIRST_POLICY, ...seams, announceBucket: announce, sizes });
    storage.replica.engine.register(BUCKET_CHANGED, async (message) => {
      await objects.bucketChanged(decodeBucketChanged(message));
      return { head: new Uint8Array(0), attached: NO_ATTACHMENT };
    });
    return objects;
  }

  #log(process: Process): Log {
    const { tell, scale } = this.#seams;
    if (scale.logLevel === undefined) return silentLog;
    return makeLog({
      write: (line) => {
        const { time: _, level, event, ...fields } = JSON.parse(line) as Record<string, string>;
        const rest = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
        if (!process.over) tell(`  ${this.#name()} ${level} ${event} ${rest.join(' ')}`);
      },
      now: () => 0,
      least: scale.logLevel,
    });
  }

  /** The process cannot go on: as the supervisor sees it, it exits; whoever drives the faults starts another. */
  #failed(process: Process, error: unknown): void {
    if (process.over) return;
    const { tell, broken } = this.#seams;
    if (!isExpected(error)) {
      tell(`${this.#name()}: broken: ${messageOf(error)}`);
      broken(error);
      return;
    }
    tell(`${this.#name()}: ends itself: ${messageOf(error)}`);
    this.crash('kill');
  }

  #mark(process: Process): ProcessMark {
    return { pid: process.number, start: String(process.number), boot: `machine ${this.number} boot ${this.#boots}` };
  }

  #runs(mark: ProcessMark): boolean {
    const process = this.#process;
    if (process === undefined) return false;
    const own = this.#mark(process);
    // what another machine's process does cannot be seen from here
    if (mark.boot !== own.boot) return !mark.boot.startsWith(`machine ${this.number} `);
    return mark.pid === own.pid;
  }

  // ---- what befalls it ----

  /** The process is killed, or the power fails: then what was not synced may be lost, and others only notice silence. */
  crash(crash: Crash): void {
    const process = this.#process;
    if (process === undefined) return;
    this.#process = undefined;
    process.over = true;
    process.clock.end();
    process.ended.resolve();
    process.gone.abort();
    if (this.#place !== undefined) this.#seams.network.crash(this.#place, { reset: crash === 'kill' });
    this.disk.onOperation = undefined;
    this.disk = this.disk.crash(crash);
    this.#locks.breakAll();
    if (crash === 'power') this.#boots += 1;
    if (this.#paused) this.resume();
  }

  pause(asleep: boolean): void {
    if (this.#paused) return;
    this.#paused = true;
    this.clock.pause(asleep);
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.clock.resume();
  }

  /** Another disk is put in: an empty one, or what `copy` gave. The machine is off. */
  replaceDisk(disk: SimulatedDisk = this.#newDisk(this.#random.uint32())): void {
    assert(this.#process === undefined, 'a disk is replaced while the machine is off');
    this.disk.stop();
    this.disk = disk;
    this.#storeId = undefined;
  }

  /** It is taken out of the cluster that has no place for it any more: with another disk it may come again. */
  retire(): void {
    this.crash('kill');
    this.isWanted = false;
    this.#place = undefined;
    this.replaceDisk();
  }

  /** What the disk shows now. */
  copyDisk(): SimulatedDisk {
    return this.disk.copy(this.#random.uint32());
  }
}

/** Errors with which a node may end itself. */
const EXPECTED = new Set(['DISK_FAILED', 'DISK_FULL', 'LOCKED', 'OLD_STORE', 'UNAVAILABLE', 'CORRUPT', 'NOT_FOUND']);

function isExpected(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' && EXPECTED.has(code);
}
