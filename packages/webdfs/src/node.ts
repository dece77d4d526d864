import { type Clock, type Disk, type Log, messageOf, type NodeId, type Random } from '@webdfs/base';
import { GroupRouter, ObjectLayer } from '@webdfs/client';
import { connectMapStore, FIRST_POLICY, parametersWith, SystemProcesses } from '@webdfs/cluster';
import { KeyRing, type OpenDoor, openDoor } from '@webdfs/gateway';
import { announceBucket, BUCKET_CHANGED, decodeBucketChanged, StorageNode } from '@webdfs/server';
import { LevelIndexHouse } from '@webdfs/store';
import { type Link, NO_ATTACHMENT } from '@webdfs/wire';
import type { ClusterAccess } from './cluster-access.ts';
import { type Credentials, readSecrets } from './credentials.ts';
import { mapSocketOf } from './owned-map.ts';
import { statusReport } from './status-report.ts';
import { whereReport } from './where-report.ts';

export interface NodeOptions {
  readonly node: NodeId;
  /** The node's folder, and that of the cluster on this machine. */
  readonly folder: string;
  readonly cluster: string;
  /** The door's address. */
  readonly host: string;
  readonly port: number;
  /** Replace those of the cluster's folder. */
  readonly credentials: Credentials | undefined;
  /** Domains for virtual-host style. */
  readonly domains: readonly string[];
  readonly pid: number;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly onFatal: (error: unknown) => void;
}

/** How long requests under way may take when a node stops. */
const GRACE_MS = 5_000;
/** How often parts whose upload is closed are looked for. */
const SWEEP_MS = 600_000;
/** Nodes of one machine speak over loopback. */
const WIRE_HOST = '127.0.0.1';

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

/** Starts a node of a cluster on this machine. @throws what opening its store, registering and listening throw */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { node, clock, random, log, disk, host, port } = options;
  const secrets = await readSecrets(disk, options.cluster);
  await using stack = new AsyncDisposableStack();
  const mapStore = stack.use(connectMapStore(mapSocketOf(options.cluster), clock, log));
  const storage = stack.use(
    await StorageNode.open({
      node,
      folder: options.folder,
      mapStore,
      clusterSecret: secrets.clusterSecret,
      host: WIRE_HOST,
      port: 0,
      door: `${host}:${port}`,
      pid: options.pid,
      disk,
      index: new LevelIndexHouse(),
      processes: new SystemProcesses(disk),
      clock,
      random,
      log,
      parameters: parametersWith(),
      onFatal: options.onFatal,
    }),
  );
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
  const folderOf = (peer: NodeId): string => `${options.cluster}/node-${peer}`;
  const access: ClusterAccess = { map, link, groups, objects, policy, clock, folderOf };
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
  return new RunningNode(storage, door, stack.move());
}

function reporterOf(
  access: ClusterAccess,
): (name: string, parameter: (name: string) => string | undefined) => Promise<unknown> {
  return async (name, parameter) => {
    if (name === 'status') return await statusReport(access);
    if (name !== 'where') return undefined;
    return await whereReport(access, parameter('bucket') ?? '', parameter('key') ?? '');
  };
}
