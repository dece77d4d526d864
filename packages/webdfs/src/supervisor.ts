import { connect } from 'node:net';
import {
  asNodeId,
  type Clock,
  codeOf,
  type Disk,
  type Log,
  messageOf,
  type Random,
  replaceWhole,
  sleep,
  utf8,
  WebdfsError,
} from '@webdfs/base';
import { bearerTokenOf } from '@webdfs/gateway';
import type { AlgorithmName } from '@webdfs/placement';
import { type Credentials, keepSecrets, type Secrets } from './credentials.ts';
import { openMap, type OwnedMap } from './owned-map.ts';
import { NodeProcess } from './node-process.ts';
import { S3Client } from './s3-client.ts';

export interface ClusterOptions {
  /** Holds everything: the map, the secrets, a folder a node. Absolute. */
  readonly folder: string;
  readonly nodes: number;
  readonly replicas: number;
  readonly placement: AlgorithmName;
  /** Whether each was asked for, and so must agree with a cluster that is already there. */
  readonly nodesGiven: boolean;
  readonly replicasGiven: boolean;
  readonly placementGiven: boolean;
  readonly host: string;
  readonly port: number;
  readonly credentials: Credentials | undefined;
  /** Made at the start unless they exist. */
  readonly buckets: readonly string[];
  /** Program and first arguments that start a node (see `nodeArguments`). */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export interface SupervisedNode {
  readonly id: number;
  readonly pid: number | undefined;
  /** Where other nodes reach it. */
  readonly address: string;
  readonly data: string;
}

/** A node that dies so often before it was ever ready will not get better by itself. */
const MAX_EARLY_DEATHS = 5;

function nodeFolder(folder: string, node: number): string {
  return `${folder}/node-${node}`;
}

/** Refuses a port that somebody already answers on: with shared ports two servers would take turns. */
async function requireFreePort(host: string, port: number): Promise<void> {
  const answered = await new Promise<boolean>((resolve) => {
    const socket = connect({ host: host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
  if (answered) {
    throw new WebdfsError(
      'BAD_CONFIG',
      `port ${port} on ${host} is taken: another program, or another "webdfs up", answers there; stop it, or choose another with --port`,
    );
  }
}

/** What a node process is told on its command line; secrets stay in files and the environment. */
export function nodeArguments(options: { folder: string; node: number; host: string; port: number }): string[] {
  const { folder, node, host, port } = options;
  return [
    '--data',
    nodeFolder(folder, node),
    '--id',
    String(node),
    '--cluster',
    folder,
    '--host',
    host,
    '--port',
    String(port),
  ];
}

/** A cluster on this machine: the supervisor's end of it. Disposing of it stops all nodes cleanly. */
export class RunningCluster implements AsyncDisposable {
  readonly folder: string;
  readonly endpoint: string;
  readonly credentials: Credentials;
  /** The plain HTTP door's token. */
  readonly bearer: string;
  /** Resolves when it was told to stop, or cannot go on. */
  readonly ended: Promise<void>;
  readonly #map: OwnedMap;
  readonly #processes: readonly NodeProcess[];

  constructor(options: {
    folder: string;
    endpoint: string;
    secrets: Secrets;
    map: OwnedMap;
    processes: readonly NodeProcess[];
    ended: Promise<void>;
  }) {
    this.folder = options.folder;
    this.endpoint = options.endpoint;
    this.credentials = {
      accessKeyId: options.secrets.accessKeyId,
      secretAccessKey: options.secrets.secretAccessKey,
    };
    this.bearer = bearerTokenOf(options.secrets);
    this.ended = options.ended;
    this.#map = options.map;
    this.#processes = options.processes;
  }

  nodes(): SupervisedNode[] {
    return this.#processes.map((process) => ({
      id: process.node,
      pid: process.pid,
      address: process.address,
      data: nodeFolder(this.folder, process.node),
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop()));
    await this.#map[Symbol.asyncDispose]();
  }
}

function untilStopped(options: ClusterOptions): Promise<void> {
  return new Promise((resolve) => {
    if (options.signal.aborted) resolve();
    options.signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Waits until all nodes are up. @throws UNAVAILABLE if one keeps dying, CANCELLED when told to stop */
async function allReady(processes: readonly NodeProcess[], options: ClusterOptions): Promise<void> {
  const ready = Promise.all(processes.map((process) => process.ready()));
  let done = false;
  void ready.then(() => {
    done = true;
  });
  while (!done) {
    if (options.signal.aborted) throw new WebdfsError('CANCELLED', 'told to stop while starting');
    const failing = processes.find((process) => process.deathsBeforeReady >= MAX_EARLY_DEATHS);
    if (failing !== undefined) {
      throw new WebdfsError(
        'UNAVAILABLE',
        `node ${failing.node} ended ${MAX_EARLY_DEATHS} times before it was ready: see the log above`,
      );
    }
    await Promise.race([ready, sleep(options.clock, 200)]);
  }
}

async function makeBuckets(client: S3Client, options: ClusterOptions): Promise<void> {
  for (const bucket of options.buckets) {
    try {
      await client.call({ method: 'PUT', bucket });
    } catch (error) {
      if (codeOf(error) !== 'ALREADY_EXISTS') throw error;
    }
  }
}

/**
 * Starts a cluster on this machine, or goes on with the one in the folder: the map store in this process, a process for
 * each node, started again when it dies. Resolves when every node serves.
 *
 * @throws BAD_CONFIG (port taken, other shape than the cluster there), LOCKED (another supervisor runs it), UNAVAILABLE
 */
export async function startCluster(options: ClusterOptions): Promise<RunningCluster> {
  const { disk, folder, log } = options;
  await requireFreePort(options.host, options.port);
  await disk.makeFolder(folder);
  const map = await openMap(options);
  const processes: NodeProcess[] = [];
  try {
    const secrets = await keepSecrets({ disk, folder, random: options.random, given: options.credentials });
    for (const node of map.nodes) {
      await disk.makeFolder(nodeFolder(folder, node));
      processes.push(
        new NodeProcess({
          node: asNodeId(node),
          command: [...options.program, ...nodeArguments({ folder, node, host: options.host, port: options.port })],
          environment: options.environment,
          clock: options.clock,
          log,
          onExit: () => map.ended(asNodeId(node)),
        }),
      );
    }
    await allReady(processes, options);
    const shown = options.host === '0.0.0.0' || options.host === '::' ? '127.0.0.1' : options.host;
    const endpoint = `http://${shown.includes(':') ? `[${shown}]` : shown}:${options.port}`;
    await replaceWhole(disk, folder, 'endpoint', utf8(`${endpoint}\n`));
    using client = new S3Client({ endpoint, credentials: secrets, clock: options.clock });
    await makeBuckets(client, options);
    return new RunningCluster({ folder, endpoint, secrets, map, processes, ended: untilStopped(options) });
  } catch (error) {
    log.error('start failed', { reason: messageOf(error) });
    await Promise.all(processes.map((process) => process.stop()));
    await map[Symbol.asyncDispose]();
    throw error;
  }
}
