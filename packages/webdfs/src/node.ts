import { type Clock, type Disk, type Log, messageOf, type NodeId, type Random } from '@webdfs/base';
import { GroupRouter, isObjectKey, ObjectLayer } from '@webdfs/client';
import { DEFAULT_PARAMETERS, FIRST_POLICY, type MapStore, parametersWith, type ProcessTable } from '@webdfs/cluster';
import { KeyRing, type OpenDoor, openDoor, type Reporter } from '@webdfs/gateway';
import {
  announceBucket,
  answerEnds,
  BUCKET_CHANGED,
  decodeBucketChanged,
  GROUP_ENDS,
  StorageNode,
} from '@webdfs/server';
import { LevelIndexHouse } from '@webdfs/store';
import { type Link, NO_ATTACHMENT } from '@webdfs/wire';
import type { ClusterAccess } from './cluster-access.ts';
import type { Credentials, Secrets } from './credentials.ts';
import { forceGroups, groupsReport } from './group-report.ts';
import { statusReport } from './status-report.ts';
import { changeTopology } from './topology-change.ts';
import { historyReport, topologyReport } from './topology-report.ts';
import { AccountKeeper } from './rescale/account-keeper.ts';
import { beginScrub, scrubReport } from './scrub-report.ts';
import { acceptedNow, SecretKeeper } from './secret-keeper.ts';
import { answerSecrets, changeToken, SECRETS, tokenReport } from './token-rotation.ts';
import { whereReport } from './where-report.ts';

/** Where the nodes of a cluster reach each other. */
export interface WireOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** The host that the others are told, if not the one listened on. */
  readonly advertise?: string;
  readonly tls: boolean;
  /** Instead of the cluster's secret: PEM, of one authority for all nodes. */
  readonly certificates?: { readonly ca: string; readonly cert: string; readonly key: string };
}

export interface NodeOptions {
  readonly node: NodeId;
  /** The node's own folder. */
  readonly folder: string;
  /** The node's from now on: it is closed with it. */
  readonly mapStore: MapStore;
  readonly secrets: Secrets;
  /** Keeps changed secrets durably; undefined: they are not this node's to change. */
  readonly saveSecrets?: (secrets: Secrets) => Promise<void>;
  readonly wire: WireOptions;
  /** The door's address. */
  readonly host: string;
  readonly port: number;
  /** Where clients are told to find the door, if not there. */
  readonly doorAdvertise?: string;
  readonly storeId?: string;
  /** For map stores that may end leases early: nodes whose session ended are replaced only after their lease's time. */
  readonly fencesAlways?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  /** Where a node keeps its data, for `status`; undefined: not on this machine. */
  readonly folderOf: (node: NodeId) => string | undefined;
  /** Replace those of the cluster. */
  readonly credentials: Credentials | undefined;
  /** Domains for virtual-host style. */
  readonly domains: readonly string[];
  readonly pid: number;
  /** By which it is told whether another run of this node has ended. */
  readonly processes: ProcessTable;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly onFatal: (error: unknown) => void;
}

/** How long requests under way may take when a node stops. */
const GRACE_MS = 5_000;
/** A node serves no longer than that after its lease was renewed last. */
const LEASE_LEFT_MS = DEFAULT_PARAMETERS.leaseMs - DEFAULT_PARAMETERS.marginMs;
/** How often parts whose upload is closed are looked for. */
const SWEEP_MS = 600_000;
/** How often all copies are counted and verified. */
const SCRUB_EVERY_MS = 7 * 86_400_000;

/** A whole node: storage, routing, objects, doors. */
export class RunningNode implements AsyncDisposable {
  readonly #storage: StorageNode;
  readonly #door: OpenDoor;
  readonly #rest: AsyncDisposableStack;

  constructor(storage: StorageNode, door: OpenDoor, rest: AsyncDisposableStack) {
    this.#storage = storage;
    this.#door = door;
    this.#rest = rest;
  }

  get node(): NodeId {
    return this.#storage.node;
  }

  /** Where the other nodes reach it. */
  get address(): string {
    return this.#storage.address;
  }

  /** Resolves when every group of which this node is primary is served. */
  async serving(clock: Clock): Promise<void> {
    while (this.#storage.replica.status().takingOver > 0) {
      await new Promise<void>((resolve) => clock.after(20, resolve));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#door.close(GRACE_MS);
    await this.#rest.disposeAsync();
  }
}

function sweepParts(objects: ObjectLayer, clock: Clock, log: Log): Disposable {
  const stop = new AbortController();
  const again = (): void => {
    const timer = clock.after(SWEEP_MS, () => {
      void objects
        .sweepUploads(stop.signal)
        .catch((error: unknown) => log.warn('sweep of parts failed', { reason: messageOf(error) }))
        .then(() => {
          if (!stop.signal.aborted) again();
        });
    });
    stop.signal.addEventListener('abort', () => timer.cancel(), { once: true });
  };
  again();
  return { [Symbol.dispose]: () => stop.abort() };
}

async function openStorage(options: NodeOptions): Promise<StorageNode> {
  const [clusterSecret, ...otherSecrets] = acceptedNow(options.secrets, options.clock.now()) as [string, ...string[]];
  const { node, clock, random, log, disk, host, port, wire, storeId, labels } = options;
  return await StorageNode.open({
    node,
    folder: options.folder,
    mapStore: options.mapStore,
    clusterSecret,
    otherSecrets,
    ...wire,
    door: options.doorAdvertise ?? `${host}:${port}`,
    ...(storeId === undefined ? {} : { storeId }),
    ...(labels === undefined ? {} : { labels }),
    pid: options.pid,
    disk,
    index: new LevelIndexHouse(),
    processes: options.processes,
    clock,
    random,
    log,
    parameters: parametersWith(options.fencesAlways === true ? { fenceMs: LEASE_LEFT_MS } : {}),
    replica: { scrub: { everyMs: SCRUB_EVERY_MS, isObject: isObjectKey } },
    onFatal: options.onFatal,
  });
}

/** Starts a node. @throws what opening its store, registering and listening throw */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { node, clock, random, log, host, port, secrets, folderOf } = options;
  await using stack = new AsyncDisposableStack();
  stack.use(options.mapStore);
  const storage = stack.use(await openStorage(options));
  const { map } = storage;
  const link = (peer: NodeId): Link => storage.link(peer);
  const groups = new GroupRouter({ map, link, self: node, clock, random, log });
  const announce = (name: string): Promise<boolean> => announceBucket(name, { self: node, map, link });
  const policy = FIRST_POLICY;
  const objects = new ObjectLayer({ groups, policy, clock, random, log, announceBucket: announce });
  storage.replica.engine.register(BUCKET_CHANGED, async (message) => {
    await objects.bucketChanged(decodeBucketChanged(message));
    return { head: new Uint8Array(0), attached: NO_ATTACHMENT };
  });
  storage.replica.engine.register(GROUP_ENDS, (message) => answerEnds(storage.store, message));
  const keeper = stack.use(
    new SecretKeeper({
      secrets,
      save: options.saveSecrets,
      apply: (secrets) => storage.setSecrets(secrets),
      clock,
      log,
    }),
  );
  storage.replica.engine.register(SECRETS, (message) => answerSecrets(keeper, random, message));
  const shared = { map, mapStore: options.mapStore, link, groups, objects, policy, folderOf };
  const access: ClusterAccess = { ...shared, clock, random, self: node, keeper };
  const door = await openDoor({
    store: objects,
    keys: new KeyRing([options.credentials ?? secrets]),
    host,
    port,
    reusePort: true,
    domains: options.domains,
    clock,
    random,
    log,
    reporter: reporterOf(access),
    onBroken: options.onFatal,
  });
  stack.use(sweepParts(objects, clock, log));
  stack.use(new AccountKeeper({ access, self: node, clock, log }));
  return new RunningNode(storage, door, stack.move());
}

type Parameter = Parameters<Reporter>[1];
type Reports = Readonly<Record<string, (access: ClusterAccess, parameter: Parameter) => Promise<unknown>>>;

/** `GET /-/NAME`. */
const TOLD: Reports = {
  status: statusReport,
  scrub: scrubReport,
  groups: groupsReport,
  token: tokenReport,
  topology: topologyReport,
  rescales: historyReport,
  where: async (access, parameter) => {
    const first = Number(parameter('block') ?? 0);
    return await whereReport(access, { bucket: parameter('bucket') ?? '', key: parameter('key') ?? '', first });
  },
};

/** `POST /-/NAME`. */
const BEGUN: Reports = {
  groups: forceGroups,
  token: changeToken,
  scrub: async (access, parameter) => await beginScrub(access, parameter('pace')),
  topology: changeTopology,
};

function reporterOf(access: ClusterAccess): Reporter {
  return async (name, parameter, method) => {
    const reports = method === 'POST' ? BEGUN : TOLD;
    return Object.hasOwn(reports, name) ? await reports[name]!(access, parameter) : undefined;
  };
}
