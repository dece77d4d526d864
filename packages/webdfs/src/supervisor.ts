import { type Clock, codeOf, type Disk, type Log, messageOf, type NodeId, type Random } from '@webdfs/base';
import { bearerTokenOf } from '@webdfs/gateway';
import type { AlgorithmName } from '@webdfs/placement';
import { type Credentials, keepSecrets, type Secrets } from './credentials.ts';
import { openMap, type OwnedMap } from './owned-map.ts';
import { NodeProcess } from './node-process.ts';
import { S3Client } from './s3-client.ts';
import { allReady, keepEndpoint, requireFreePort, untilStopped } from './start-up.ts';

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

function nodeFolder(folder: string, node: number): string {
  return `${folder}/node-${node}`;
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
    return this.#processes.map(({ node = 0, pid, address }) => ({
      id: node,
      pid,
      address,
      data: nodeFolder(this.folder, node),
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop()));
    await this.#map[Symbol.asyncDispose]();
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

function startProcess(node: NodeId, map: OwnedMap, options: ClusterOptions): NodeProcess {
  const { folder, host, port, program, environment, clock, log } = options;
  return new NodeProcess({
    node,
    command: [...program, ...nodeArguments({ folder, node, host, port })],
    environment,
    clock,
    log,
    onExit: () => map.ended(node),
  });
}

/** Starts what the map has and no process has, and stops what the map has no more: the cluster grows and shrinks as it runs. */
async function followNodes(map: OwnedMap, processes: NodeProcess[], options: ClusterOptions): Promise<void> {
  const { disk, folder, log } = options;
  for (const process of processes.filter(({ node }) => node !== undefined && !map.nodes().includes(node))) {
    log.info('node has left: stopped', { node: process.node });
    processes.splice(processes.indexOf(process), 1);
    void process.stop();
  }
  for (const node of map.nodes()) {
    await disk.makeFolder(nodeFolder(folder, node));
    if (processes.every((process) => process.node !== node)) processes.push(startProcess(node, map, options));
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
    await followNodes(map, processes, options);
    map.onChange(() => void followNodes(map, processes, options));
    await allReady(processes, options);
    const endpoint = await keepEndpoint(disk, folder, options);
    using client = new S3Client({ endpoint, credentials: secrets, clock: options.clock });
    await makeBuckets(client, options);
    return new RunningCluster({ folder, endpoint, secrets, map, processes, ended: untilStopped(options.signal) });
  } catch (error) {
    log.error('start failed', { reason: messageOf(error) });
    await Promise.all(processes.map((process) => process.stop()));
    await map[Symbol.asyncDispose]();
    throw error;
  }
}
