import { type Clock, codeOf, type Disk, type Log, messageOf, type NodeId, WebdfsError } from '@webdfs/base';
import { readIdentity } from '@webdfs/store';
import { type Credentials, readSecrets, saveSecrets, type Secrets } from './credentials.ts';
import { NodeProcess } from './node-process.ts';
import { allReady, keepEndpoint, requireFreePort, untilStopped } from './start-up.ts';
import { secretName, secretsOf } from './token.ts';

export interface JoinOptions {
  /** The node's folder. Absolute. */
  readonly folder: string;
  /** What `webdfs cluster token` printed; not needed again once the folder has its secrets. */
  readonly token: string | undefined;
  /** The door's address. */
  readonly host: string;
  readonly port: number;
  /** The host that clients are told. */
  readonly advertise: string | undefined;
  /** Program and arguments of the process that is the node. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** One node on this machine of a cluster on several: the supervisor's end of it. */
export interface RunningMember extends AsyncDisposable {
  readonly node: NodeId;
  readonly pid: number | undefined;
  /** Where other nodes reach it. */
  readonly address: string;
  readonly endpoint: string;
  readonly credentials: Credentials;
  /** Resolves when it was told to stop. */
  readonly ended: Promise<void>;
}

async function keptSecrets(disk: Disk, folder: string): Promise<Secrets | undefined> {
  try {
    return await readSecrets(disk, folder);
  } catch (error) {
    if (codeOf(error) === 'NOT_FOUND') return undefined;
    throw error;
  }
}

/**
 * The secrets of the folder, or of the token that is handed over.
 *
 * @throws BAD_CONFIG if nobody has handed one over yet, or one that is not of the cluster whose data the folder holds
 */
async function secretsFor({ disk, folder, token }: JoinOptions): Promise<Secrets> {
  const kept = await keptSecrets(disk, folder);
  if (token === undefined) {
    if (kept !== undefined) return kept;
    throw new WebdfsError(
      'BAD_CONFIG',
      'joining needs the token of the cluster, from "webdfs cluster init" or "webdfs cluster token": ' +
        'name its file with --token-file, or set WEBDFS_TOKEN',
    );
  }
  const given = secretsOf(token);
  if (kept?.clusterSecret === given.clusterSecret) return kept;
  // such as one that a service file still has since before a rotation
  if (kept?.formerNames?.includes(secretName(given)) === true) return kept;
  if (kept !== undefined && (await readIdentity(disk, folder)) !== undefined) {
    throw new WebdfsError('BAD_CONFIG', `${folder} holds data of a cluster with another token: leave the token out`);
  }
  await saveSecrets(disk, folder, given);
  return given;
}

/**
 * Gives a folder whose node does not run the token that the cluster has by now; its keys of S3 stay.
 *
 * @throws NOT_FOUND if the folder has no keys yet, BAD_CONFIG
 */
export async function replaceToken(disk: Disk, folder: string, token: string): Promise<void> {
  const kept = await readSecrets(disk, folder);
  const { accessKeyId, secretAccessKey, formerNames = [] } = kept;
  const { clusterSecret } = secretsOf(token);
  const former = [...formerNames, secretName(kept)];
  await saveSecrets(disk, folder, { accessKeyId, secretAccessKey, clusterSecret, formerNames: former });
}

/**
 * Runs one node of a cluster on several machines: a process that is started again when it ends or hangs. Resolves when it
 * serves, which may be long: until the cluster is made, or has a place for it.
 *
 * @throws BAD_CONFIG (port taken, no token), UNAVAILABLE if it ends again and again before it is ready, CANCELLED
 */
export async function startJoined(options: JoinOptions): Promise<RunningMember> {
  const { disk, folder, host, port, clock, log, signal } = options;
  await requireFreePort(host, port);
  await disk.makeFolder(folder);
  const { accessKeyId, secretAccessKey } = await secretsFor(options);
  const child = new NodeProcess({
    command: options.command,
    environment: options.environment,
    clock,
    log,
    onExit: () => undefined,
  });
  try {
    await allReady([child], options);
    const endpoint = await keepEndpoint(disk, folder, { host: options.advertise ?? host, port });
    return {
      get node() {
        return child.node!;
      },
      get pid() {
        return child.pid;
      },
      get address() {
        return child.address;
      },
      endpoint,
      credentials: { accessKeyId, secretAccessKey },
      ended: untilStopped(signal),
      [Symbol.asyncDispose]: () => child.stop(),
    };
  } catch (error) {
    log.error('start failed', { reason: messageOf(error) });
    await child.stop();
    throw error;
  }
}
