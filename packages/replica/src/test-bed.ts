import {
  asNodeId,
  codeOf,
  type GroupKey,
  ManualClock,
  type NodeId,
  SeededRandom,
  silentLog,
  utf8,
  WebdfsError,
} from '@webdfs/base';
import { SimulatedDisk } from '@webdfs/base/testing';
import {
  createCluster,
  downKey,
  FIRST_POLICY,
  type FollowedMap,
  followMap,
  formatDocument,
  liveKey,
  MemoryMapStore,
} from '@webdfs/cluster';
import { groupOf, hashKey } from '@webdfs/placement';
import { MemoryLock, openStore, SortedIndexHouse, type Store } from '@webdfs/store';
import { type Link, MemoryNetwork, type Transport } from '@webdfs/wire';
import { ReplicaEngine } from './engine.ts';
import type { EngineHooks } from './hooks.ts';
import type { ReplicaParameters } from './parameters.ts';
import { packOwner, packSummary } from './record.ts';
import type { WriteRequest } from './requests.ts';

/** Builders for tests of the engine: nodes with real stores, network and map, on one clock that the test moves. */

export interface BedOptions {
  readonly nodes?: number;
  readonly copies?: number;
  readonly groupBits?: number;
  readonly parameters?: Partial<ReplicaParameters>;
  /** Changes what a node's engine gets: links that fail, stores that lie. */
  readonly link?: (self: NodeId, link: Link) => Link;
  readonly store?: (self: NodeId, store: Store) => Store;
}

export class BedNode {
  readonly id: NodeId;
  readonly store: Store;
  readonly engine: ReplicaEngine;
  readonly transport: Transport;
  readonly map: FollowedMap;
  readonly lease: { session: number; isHeld: boolean; holds: () => boolean };
  readonly complaints: NodeId[] = [];
  readonly fatal: unknown[] = [];

  constructor(parts: {
    id: NodeId;
    store: Store;
    engine: ReplicaEngine;
    transport: Transport;
    map: FollowedMap;
    lease: BedNode['lease'];
  }) {
    this.id = parts.id;
    this.store = parts.store;
    this.engine = parts.engine;
    this.transport = parts.transport;
    this.map = parts.map;
    this.lease = parts.lease;
  }
}

export class TestBed implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly random = new SeededRandom(7);
  readonly mapStore = new MemoryMapStore(this.clock);
  readonly network = new MemoryNetwork({ clock: this.clock });
  readonly disks = new Map<NodeId, SimulatedDisk>();
  readonly locks = new MemoryLock();
  readonly nodes = new Map<NodeId, BedNode>();
  readonly #options: BedOptions;
  readonly fatal: unknown[] = [];

  private constructor(options: BedOptions) {
    this.#options = options;
  }

  static async open(options: BedOptions = {}): Promise<TestBed> {
    const bed = new TestBed(options);
    const ids = Array.from({ length: options.nodes ?? 3 }, (_, i) => asNodeId(i + 1));
    await createCluster(bed.mapStore, {
      name: 'test',
      random: bed.random,
      copies: options.copies ?? 3,
      groupBits: options.groupBits ?? 2,
      nodes: ids.map((id) => ({ id, address: bed.network.address(id) })),
    });
    for (const id of ids) bed.disks.set(id, new SimulatedDisk({ seed: id }));
    await bed.until(Promise.all(ids.map((id) => bed.start(id))));
    return bed;
  }

  /** A node begins, on the disk it has. */
  async start(id: NodeId): Promise<BedNode> {
    const session = await this.#register(id);
    const map = await followMap(this.mapStore.connect(), this.clock, silentLog);
    await map.readThrough(session);
    const store = await this.openStore(id);
    const lease = { session, isHeld: true, holds: () => lease.isHeld };
    const node: { engine?: ReplicaEngine } = {};
    const transport = this.network.open(id, {
      call: (verb, message, context) => node.engine!.handleCall(verb, message, context),
      post: (_, message, from) => node.engine?.handlePost(from, message),
      receive: (verb, message, body, context) => node.engine!.receive(verb, message, body, context),
      serve: (verb, message, body, context) => node.engine!.serve(verb, message, body, context),
    });
    const peers = map.view.nodes().map((peer) => [peer, this.network.address(peer)] as const);
    transport.setPeers(new Map(peers.filter(([peer]) => peer !== id)));
    const {
      parameters,
      link = (_: NodeId, plain: Link) => plain,
      store: lies = (_: NodeId, plain: Store) => plain,
    } = this.#options;
    const complaints: NodeId[] = [];
    const hooks: EngineHooks = {
      complain: (_, peer) => void complaints.push(peer),
      fatal: (error) => void this.fatal.push(error),
    };
    node.engine = new ReplicaEngine({
      self: id,
      store: lies(id, store),
      map,
      lease,
      link: (peer) => link(id, transport.link(peer)),
      clock: this.clock,
      random: this.random,
      log: silentLog,
      hooks,
      ...(parameters === undefined ? {} : { parameters }),
    });
    await node.engine.start();
    const started = new BedNode({ id, store, engine: node.engine, transport, map, lease });
    started.complaints.push(...complaints);
    this.nodes.set(id, started);
    return started;
  }

  async openStore(id: NodeId): Promise<Store> {
    const disk = this.disks.get(id)!;
    await disk.makeFolder(`/n${id}`);
    await disk.syncFolder('/');
    return await openStore({
      disk,
      index: new SortedIndexHouse({ disk, random: this.random }),
      folder: `/n${id}/store`,
      identity: { node: id, cluster: 'test' },
      clock: this.clock,
      random: this.random,
      log: silentLog,
      lock: this.locks,
      options: { ballast: false },
    });
  }

  async #register(id: NodeId): Promise<number> {
    const value = formatDocument({ pid: 1, startedMs: this.clock.now() });
    const { revision } = await this.mapStore.transact({
      compare: [],
      write: [{ type: 'put', key: liveKey(id), value }],
    });
    return revision;
  }

  /** A node dies: nothing of it answers any more; what was not on its disk is gone. */
  async kill(id: NodeId): Promise<void> {
    const node = this.nodes.get(id)!;
    this.nodes.delete(id);
    node.engine.stop();
    this.disks.set(id, this.disks.get(id)!.crash('power'));
    this.locks.breakAll();
    await this.until(Promise.resolve(node.transport[Symbol.asyncDispose]()));
    await this.until(Promise.resolve(node.map[Symbol.asyncDispose]()));
  }

  /** The controller's judgement. */
  async markDown(id: NodeId): Promise<void> {
    const session = this.nodes.get(id)?.lease.session ?? 0;
    await this.mapStore.transact({
      compare: [],
      write: [
        { type: 'put', key: downKey(id), value: formatDocument({ reason: 'lost', session }) },
        { type: 'delete', key: liveKey(id) },
      ],
    });
  }

  /** Lets time pass until a promise has settled. */
  async until<Value>(promise: Promise<Value>, limitMs = 60_000): Promise<Value> {
    const settled = new Set<Promise<unknown>>();
    const settle = (): unknown => settled.add(promise);
    promise.then(settle, settle);
    for (let ms = 0; settled.size === 0 && ms < limitMs; ms += 2) await this.pass(2);
    if (settled.size === 0) throw new WebdfsError('TIMEOUT', `not settled within ${limitMs} ms of the test's clock`);
    return await promise;
  }

  async pass(ms: number): Promise<void> {
    for (let turn = 0; turn < 4; turn++) await new Promise<void>((resolve) => void setImmediate(resolve));
    this.clock.advance(ms);
  }

  /** Lets time pass until something holds. */
  async when(holds: () => boolean, limitMs = 60_000): Promise<void> {
    for (let ms = 0; !holds() && ms < limitMs; ms += 5) await this.pass(5);
    if (!holds()) throw new WebdfsError('TIMEOUT', `does not hold within ${limitMs} ms of the test's clock`);
  }

  groupOf(key: Uint8Array): GroupKey {
    const anyone = this.nodes.values().next().value!;
    return { policy: FIRST_POLICY, group: groupOf(hashKey(key).high, anyone.map.view.map.groupBits) };
  }

  primaryOf(group: GroupKey): BedNode {
    const anyone = this.nodes.values().next().value!;
    return this.nodes.get(anyone.map.view.group(group).primary!)!;
  }

  /** Tries as a gateway would: with the same id, at whoever is primary by now. */
  async write(request: WriteRequest): ReturnType<ReplicaEngine['write']> {
    const tries = async (): ReturnType<ReplicaEngine['write']> => {
      for (;;) {
        try {
          return await this.primaryOf(request).engine.write(request);
        } catch (error) {
          const code = codeOf(error);
          if (!(error instanceof WebdfsError) || error.remedy !== 'retry' || code === 'CONFLICT') throw error;
          await new Promise<void>((resolve) => void this.clock.after(20, resolve));
        }
      }
    };
    return await this.until(tries());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { engine } of this.nodes.values()) engine.stop();
    for (const { transport, map, store } of this.nodes.values()) {
      await this.until(Promise.resolve(transport[Symbol.asyncDispose]()));
      await this.until(Promise.resolve(map[Symbol.asyncDispose]()));
      await this.until(Promise.resolve(store[Symbol.asyncDispose]()));
    }
  }
}

let requests = 0;

export function aRequestId(): Uint8Array {
  const id = new Uint8Array(16);
  new DataView(id.buffer).setUint32(0, ++requests);
  return id;
}

/** Bucket 1 and a name. */
export function aKey(name: string): Uint8Array {
  return utf8(`\0\0\0\u0001${name}`);
}

export function aPut(
  bed: TestBed,
  name: string,
  body: Uint8Array | string,
  more: Partial<WriteRequest> = {},
): WriteRequest {
  const key = aKey(name);
  const { high: hashHigh, low: hashLow } = hashKey(key);
  const bytes = typeof body === 'string' ? utf8(body) : body;
  const etag = new Uint8Array(16);
  etag.set(bytes.subarray(0, 16));
  return {
    ...bed.groupOf(key),
    requestId: aRequestId(),
    ageMs: 0,
    kind: 'put',
    key,
    hashHigh,
    hashLow,
    conditions: {},
    requires: [],
    summary: packSummary({ size: bytes.length, etag, parts: 0, flags: 0 }),
    owner: packOwner({ type: 'inline' }, '{}').owner,
    body: bytes,
    ...more,
  };
}

export function aDelete(bed: TestBed, name: string): WriteRequest {
  return aPut(bed, name, '', { kind: 'delete', summary: new Uint8Array(0), owner: new Uint8Array(0) });
}
