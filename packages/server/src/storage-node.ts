import {
  type Clock,
  type Disk,
  fromHex,
  type Log,
  messageOf,
  type NodeId,
  type Random,
  WebdfsError,
} from '@webdfs/base';
import {
  type ClusterParameters,
  type Complaint,
  type FollowedMap,
  followMap,
  MapCopy,
  type MapStore,
  NodeSession,
  type ProcessTable,
  runController,
  type RunningController,
} from '@webdfs/cluster';
import { ReplicaNode, type ReplicaNodeOptions } from '@webdfs/replica';
import {
  type FolderLock,
  openStore,
  type RowIndexHouse,
  type Store,
  type StoreTuning,
  UpkeepLoop,
} from '@webdfs/store';
import { type Certificates, type Handlers, type Link, openTcpTransport, type Transport } from '@webdfs/wire';
import { complain, COMPLAIN, decodeComplaint } from './complaints.ts';
import { LateHandlers } from './node-handlers.ts';

export interface StorageNodeOptions {
  readonly node: NodeId;
  /** The node's own folder. */
  readonly folder: string;
  readonly mapStore: MapStore;
  /** 64 hex digits: proves to the other nodes that this one belongs to the cluster. */
  readonly clusterSecret: string;
  /** Others that nodes may still have, or already have: accepted until `setSecrets` says otherwise. */
  readonly otherSecrets?: readonly string[];
  /** Where to listen for the other nodes; port 0: any. */
  readonly host: string;
  readonly port: number;
  /** The host by which the others reach this node, where it is not `host`. */
  readonly advertise?: string;
  /** Links are encrypted and both ends proved; all nodes of a cluster alike. Default: proved at their start only. */
  readonly tls?: boolean;
  /** Instead of the secret: certificates of one authority, PEM, that name the cluster and the role (`webdfs://NAME/node`). */
  readonly certificates?: Omit<Certificates, 'clusterName'>;
  /** The id of a new data folder, if it was announced before. */
  readonly storeId?: string;
  /** Machine, rack, zone; as the map has them if missing. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Where clients reach this node's gateway, for `status`. */
  readonly door: string;
  readonly pid: number;
  readonly disk: Disk;
  readonly index: RowIndexHouse;
  readonly lock?: FolderLock;
  readonly processes: ProcessTable;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly parameters: ClusterParameters;
  /** The node cannot go on (its disk failed, its place was taken, an invariant broke): the process should end. */
  readonly onFatal: (error: unknown) => void;
  /** Another network than TCP: gives the node's transport. */
  readonly openTransport?: (handlers: Handlers) => Transport;
  /** Sizes of the store, where the defaults do not fit. */
  readonly store?: StoreTuning;
  /** Paces of replication, where the defaults do not fit. */
  readonly replica?: Pick<ReplicaNodeOptions, 'garbage' | 'learner' | 'leftovers' | 'repair' | 'scrub' | 'source'>;
}

/** How old the last durable write may be before an idle node writes one to prove its disk, milliseconds. */
const PROVE_AFTER_MS = 1_000;

/**
 * The storage daemon of one node: its store, its place in the cluster, and replication, wired to the network. The gateway
 * stands on it, but needs nothing of it beyond `map` and `link`.
 */
export class StorageNode implements AsyncDisposable {
  readonly node: NodeId;
  readonly map: FollowedMap;
  readonly store: Store;
  readonly replica: ReplicaNode;
  readonly #transport: NodeLinks;
  readonly #session: NodeSession;
  readonly #controller: RunningController;
  readonly #upkeep: UpkeepLoop;
  readonly #stopFollowing: () => void;
  readonly #copy: MapCopy;

  private constructor(parts: {
    node: NodeId;
    map: FollowedMap;
    copy: MapCopy;
    store: Store;
    replica: ReplicaNode;
    transport: NodeLinks;
    session: NodeSession;
    controller: RunningController;
    upkeep: UpkeepLoop;
    stopFollowing: () => void;
  }) {
    this.node = parts.node;
    this.map = parts.map;
    this.#copy = parts.copy;
    this.store = parts.store;
    this.replica = parts.replica;
    this.#transport = parts.transport;
    this.#session = parts.session;
    this.#controller = parts.controller;
    this.#upkeep = parts.upkeep;
    this.#stopFollowing = parts.stopFollowing;
  }

  /** @throws what opening the store, registering and listening throw; the message says who must act */
  static async open(options: StorageNodeOptions): Promise<StorageNode> {
    const { node, clock, log, mapStore } = options;
    const stack = new AsyncDisposableStack();
    try {
      const map = stack.use(await followMap(mapStore, clock, log));
      const store = stack.use(await openNodeStore(options, map));
      const copy = stack.use(new MapCopy({ map, save: (bytes) => store.saveFile('map', bytes), clock, log }));
      const handlers = new LateHandlers();
      const transport = stack.use(await openNodeTransport(options, map, handlers));
      const stopFollowing = followPeers(map, transport, node);
      const session = stack.use(await register(options, { map, store, address: addressOf(options, transport) }));
      const link = (peer: NodeId): Link => transport.link(peer);
      const controller = stack.use(
        runController({
          node,
          session: () => session.session,
          renewedMs: () => session.renewedMs,
          store: mapStore,
          map,
          clock,
          log,
          parameters: options.parameters,
        }),
      );
      const tell = (complaint: Complaint): void => complain(complaint, { self: node, map, link, controller });
      const replica = makeReplica(options, { map, store, session, link, tell });
      handlers.complete(withComplaints(replica.handlers, controller, log));
      await replica.start();
      void session.failed.then(options.onFatal);
      void map.failed.then(options.onFatal);
      const upkeep = new UpkeepLoop({ clock, log, compact: () => store.compact() });
      upkeep.start();
      stack.move();
      return new StorageNode({
        node,
        map,
        copy,
        store,
        replica,
        transport,
        session,
        controller,
        upkeep,
        stopFollowing,
      });
    } catch (error) {
      await stack.disposeAsync();
      throw error;
    }
  }

  /** Where the other nodes reach this one. */
  get address(): string {
    return this.#transport.address;
  }

  link(node: NodeId): Link {
    return this.#transport.link(node);
  }

  /** 64 hex digits each, the present one first; links that stand go on. */
  setSecrets(secrets: readonly string[]): void {
    this.#transport.setSecrets?.(secrets.map((secret) => fromHex(secret)));
  }

  /** Leaves the cluster in order: judges nobody, serves nothing, then ends its session and closes its store. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#controller[Symbol.asyncDispose]();
    this.replica.stop();
    this.#stopFollowing();
    await this.#upkeep.stop();
    await this.#session[Symbol.asyncDispose]();
    await this.#transport[Symbol.asyncDispose]();
    await this.#copy[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
    await this.map[Symbol.asyncDispose]();
  }
}

async function openNodeStore(options: StorageNodeOptions, map: FollowedMap): Promise<Store> {
  const { node, folder, disk, index, clock, random, log, lock } = options;
  return await openStore({
    disk,
    index,
    folder,
    identity: {
      node,
      cluster: map.view.map.cluster,
      ...(options.storeId === undefined ? {} : { storeId: options.storeId }),
    },
    clock,
    random,
    log,
    onFailed: options.onFatal,
    ...(lock === undefined ? {} : { lock }),
    ...(options.store === undefined ? {} : { options: options.store }),
  });
}

/** Of a transport that has secrets. */
type NodeLinks = Transport & { setSecrets?(secrets: readonly Uint8Array[]): void };

async function openNodeTransport(
  options: StorageNodeOptions,
  map: FollowedMap,
  handlers: Handlers,
): Promise<NodeLinks> {
  const { node, host, port, clock, random, log, openTransport, certificates } = options;
  if (openTransport !== undefined) return openTransport(handlers);
  const { cluster, name } = map.view.map;
  return await openTcpTransport({
    self: node,
    cluster,
    secret: fromHex(options.clusterSecret),
    otherSecrets: (options.otherSecrets ?? []).map((secret) => fromHex(secret)),
    ...(certificates === undefined ? {} : { certificates: { ...certificates, clusterName: name } }),
    host,
    port,
    handlers,
    clock,
    random,
    log,
    tls: options.tls === true,
  });
}

/** What the others are told: where the transport listens, unless that is no place to be reached at. */
function addressOf({ advertise }: StorageNodeOptions, transport: Transport): string {
  if (advertise === undefined) return transport.address;
  const port = transport.address.slice(transport.address.lastIndexOf(':') + 1);
  return advertise.includes(':') ? `[${advertise}]:${port}` : `${advertise}:${port}`;
}

/** Keeps the transport's addresses those of the map. */
function followPeers(map: FollowedMap, transport: Transport, self: NodeId): () => void {
  let known = '';
  const look = (): void => {
    const { view } = map;
    const addresses = new Map<NodeId, string>();
    for (const node of view.nodes()) {
      const address = view.node(node)?.address ?? '';
      if (node !== self && address !== '') addresses.set(node, address);
    }
    const now = JSON.stringify([...addresses]);
    if (now === known) return;
    known = now;
    transport.setPeers(addresses);
  };
  look();
  return map.onChange(look);
}

async function register(
  options: StorageNodeOptions,
  parts: { map: FollowedMap; store: Store; address: string },
): Promise<NodeSession> {
  const { node, mapStore, clock, log, parameters, processes, door } = options;
  const { map, store, address } = parts;
  return await NodeSession.start({
    node,
    address,
    ...(options.labels === undefined ? {} : { labels: options.labels }),
    disk: store.identity.storeId,
    store: mapStore,
    map,
    clock,
    log,
    parameters,
    processes,
    door,
    memory: { load: () => store.loadFile('life'), save: (bytes) => store.saveFile('life', bytes) },
    lastDurableMs: () => {
      const { lastDurableMs } = store.facts();
      // an idle store has nothing to write: it is asked for a proof, which counts at a later renewal
      if (clock.monotonic() - lastDurableMs > PROVE_AFTER_MS) {
        store
          .proveDisk()
          .catch((error: unknown) => log.error('disk does not prove itself', { error: messageOf(error) }));
      }
      return lastDurableMs;
    },
  });
}

function makeReplica(
  options: StorageNodeOptions,
  parts: {
    map: FollowedMap;
    store: Store;
    session: NodeSession;
    link: (node: NodeId) => Link;
    tell: (complaint: Complaint) => void;
  },
): ReplicaNode {
  const { node, clock, random, log, pid, parameters } = options;
  const { map, store, session, link, tell } = parts;
  return new ReplicaNode({
    ...options.replica,
    self: node,
    pid,
    store,
    map,
    lease: session,
    link,
    clock,
    random,
    log,
    parameters: { leaseMs: parameters.leaseMs, marginMs: parameters.marginMs, memberMs: parameters.memberMs },
    hooks: {
      complain: (_group, about) => tell({ from: node, about, below: true }),
      diskIsOld: (group) => {
        const error = new WebdfsError(
          'OLD_STORE',
          `the disk of node ${node} lacks acknowledged entries of group ${group.group}`,
        );
        void session.disown().then(
          () => options.onFatal(error),
          (cause: unknown) => options.onFatal(new WebdfsError('OLD_STORE', error.message, { cause })),
        );
      },
      fatal: options.onFatal,
    },
  });
}

function withComplaints(handlers: Handlers, controller: RunningController, log: Log): Handlers {
  return {
    ...handlers,
    post(verb, message, from) {
      if (verb !== COMPLAIN) return handlers.post(verb, message, from);
      try {
        controller.complain(decodeComplaint(message, from));
      } catch (error) {
        log.warn('complaint not understood', { from, error: messageOf(error) });
      }
    },
  };
}
