import { assert, type Clock, messageOf, makeLog, type NodeId, SeededRandom, silentLog, type Log } from '@webdfs/base';
import { type Crash, type DiskFate, type DiskOperation, SimulatedDisk } from '@webdfs/base/testing';
import { type Groups, GroupRouter, ObjectLayer } from '@webdfs/client';
import {
  type ClusterParameters,
  FIRST_POLICY,
  type MapStore,
  type MemoryMapStore,
  type ProcessMark,
} from '@webdfs/cluster';
import { announceBucket, BUCKET_CHANGED, decodeBucketChanged, StorageNode } from '@webdfs/server';
import { MemoryLock, SortedIndexHouse } from '@webdfs/store';
import { type Link, type MemoryNetwork, NO_ATTACHMENT } from '@webdfs/wire';
import { MachineClock } from './machine-clock.ts';
import { MapAccess, type MapRoad } from './map-access.ts';
import type { Scale } from './scale.ts';
import type { SimulatedTime } from './simulated-time.ts';

const FOLDER = '/data/node';

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

/** One machine of the cluster: clock, disk, a road to the map store, and a process of the real server while one runs. */
export class SimulatedMachine {
  readonly node: NodeId;
  readonly clock: MachineClock;
  readonly road: MapRoad = { requestsLost: false, answersLost: false, watchStuck: false, latencyMs: 2 };
  disk: SimulatedDisk;
  /** What becomes of disk operations; undefined: they work. */
  fate: ((operation: DiskOperation) => DiskFate) | undefined;
  readonly #seams: MachineSeams;
  readonly #random: SeededRandom;
  readonly #locks = new MemoryLock();
  readonly #diskSeed: number;
  #process: Process | undefined;
  #processes = 0;
  #boots = 1;
  #paused = false;

  constructor(node: NodeId, seams: MachineSeams) {
    this.node = node;
    this.#seams = seams;
    this.#random = new SeededRandom(seams.random.uint32());
    this.clock = new MachineClock(seams.time, Number(node), this.#random.below(2_000) - 1_000);
    this.#diskSeed = this.#random.uint32();
    this.disk = this.#newDisk(this.#diskSeed);
  }

  #newDisk(seed: number): SimulatedDisk {
    return new SimulatedDisk({ seed, clock: this.clock, latencyMs: 1, totalBytes: this.#seams.scale.diskBytes });
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
    const { node } = this;
    const { mapStore, network, parameters, scale } = this.#seams;
    const random = new SeededRandom(this.#random.uint32());
    const { clock } = process;
    const log = this.#log(process);
    const access: MapStore = new MapAccess(mapStore.connect(), this.road, clock, random);
    await disk.makeFolder(FOLDER);
    await disk.syncFolder('/data');
    await disk.syncFolder('/');
    const storage = await StorageNode.open({
      node,
      folder: FOLDER,
      mapStore: access,
      clusterSecret: '',
      host: '',
      port: 0,
      door: '',
      pid: process.number,
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
        if (!process.over) tell(`  node ${this.node} ${level} ${event} ${rest.join(' ')}`);
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
      tell(`node ${this.node}: broken: ${messageOf(error)}`);
      broken(error);
      return;
    }
    tell(`node ${this.node}: ends itself: ${messageOf(error)}`);
    this.crash('kill');
  }

  #mark(process: Process): ProcessMark {
    return { pid: process.number, start: String(process.number), boot: `machine ${this.node} boot ${this.#boots}` };
  }

  #runs(mark: ProcessMark): boolean {
    const process = this.#process;
    if (process === undefined) return false;
    const own = this.#mark(process);
    // what another machine's process does cannot be seen from here
    if (mark.boot !== own.boot) return !mark.boot.startsWith(`machine ${this.node} `);
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
    this.#seams.network.crash(this.node, { reset: crash === 'kill' });
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
