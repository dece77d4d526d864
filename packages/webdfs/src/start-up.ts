import { connect } from 'node:net';
import { type Clock, type Disk, type ErrorCode, replaceWhole, sleep, utf8, WebdfsError } from '@webdfs/base';
import type { NodeProcess } from './node-process.ts';

/** What starting node processes is about, whether one machine runs all of a cluster or one node of it. */

/** A node that dies so often before it was ever ready will not get better by itself. */
const MAX_EARLY_DEATHS = 5;
/** Nor will one whose failure only the operator can mend. (A folder that is locked may be let go by a process that ends.) */
const HOPELESS: readonly ErrorCode[] = [
  'BAD_CONFIG',
  'ACCESS_DENIED',
  'NOT_FOUND',
  'WRONG_PEER',
  'OLD_STORE',
  'NEWER_FORMAT',
  'UNSUPPORTED',
];

/** Refuses a port that somebody already answers on: with shared ports two servers would take turns. */
export async function requireFreePort(host: string, port: number): Promise<void> {
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

export function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Waits until all nodes are up. @throws what one says that cannot start, UNAVAILABLE if one keeps dying, CANCELLED */
export async function allReady(
  processes: readonly NodeProcess[],
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const ready = Promise.all(processes.map((process) => process.ready()));
  let done = false;
  void ready.then(() => {
    done = true;
  });
  while (!done) {
    if (options.signal.aborted) throw new WebdfsError('CANCELLED', 'told to stop while starting');
    for (const { failure } of processes) if (failure !== undefined && HOPELESS.includes(failure.code)) throw failure;
    const failing = processes.find((process) => process.deathsBeforeReady >= MAX_EARLY_DEATHS);
    if (failing !== undefined) {
      const name = failing.node === undefined ? 'the node' : `node ${failing.node}`;
      throw new WebdfsError(
        'UNAVAILABLE',
        `${name} ended ${MAX_EARLY_DEATHS} times before it was ready: see the log above`,
      );
    }
    await Promise.race([ready, sleep(options.clock, 200)]);
  }
}

/** The URL of a door, for people and for the commands that are told its data folder only; kept there. */
export async function keepEndpoint(
  disk: Disk,
  folder: string,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<string> {
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  const endpoint = `http://${shown.includes(':') ? `[${shown}]` : shown}:${port}`;
  await replaceWhole(disk, folder, 'endpoint', utf8(`${endpoint}\n`));
  return endpoint;
}
