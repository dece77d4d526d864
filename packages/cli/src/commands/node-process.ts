import { asNodeId, codeOf, type Log, messageOf, NodeDisk, systemClock, SystemRandom } from '@webdfs/base';
import {
  BEAT_MS,
  credentialsFrom,
  etcdVersion,
  type FromNode,
  isToNode,
  mayEndLeasesEarly,
  type RunningNode,
  startJoinedNode,
  startOwnedNode,
} from '@webdfs/webdfs';
import { type Arguments, type Command, EXIT, exitCodeOf, UsageError } from '../command.ts';
import { type EtcdSettings, etcdSettings, openEtcd } from '../etcd-options.ts';
import { JOIN_OPTIONS, type JoinSettings, joinSettings } from '../join-options.ts';
import { stderrLog } from '../log-level.ts';
import { wireCertificates } from '../wire-certificates.ts';
import type { Terminal } from '../terminal.ts';

function need(args: Arguments, name: string): string {
  const value = args.text(name);
  if (value === undefined) throw new UsageError(`it lacks --${name}: it is started by "webdfs up" and "webdfs node"`);
  return value;
}

function tell(message: FromNode): void {
  if (process.connected) process.send?.(message);
}

function beat(): void {
  tell({ type: 'beat' });
  systemClock.after(BEAT_MS, beat);
}

/** Aborted when the supervisor says so, or is gone. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  process.on('message', (message) => {
    if (isToNode(message)) stop.abort();
  });
  process.on('disconnect', () => stop.abort());
  return stop.signal;
}

function surroundings(terminal: Terminal, log: Log) {
  const domain = terminal.environment['WEBDFS_DOMAIN'];
  return {
    credentials: credentialsFrom(terminal.environment),
    domains: domain === undefined ? [] : [domain],
    pid: process.pid,
    disk: new NodeDisk(),
    clock: systemClock,
    random: new SystemRandom(),
    log,
    onFatal(error: unknown): never {
      log.error('node ends', { reason: messageOf(error) });
      process.exit(EXIT.FAILED);
    },
  };
}

async function startOwned(args: Arguments, terminal: Terminal): Promise<RunningNode> {
  const node = asNodeId(args.count('id', 0, { least: 1, most: 65_535 }));
  return await startOwnedNode({
    ...surroundings(terminal, stderrLog(terminal, { node })),
    node,
    folder: need(args, 'data'),
    cluster: need(args, 'cluster'),
    host: need(args, 'host'),
    port: args.count('port', 0, { least: 1, most: 65_535 }),
  });
}

/**
 * Whether nodes whose session ended are replaced only when their lease would have run out: where etcd may end leases early,
 * the one may be over and the other not.
 *
 * @throws UNSUPPORTED if etcd is too old
 */
async function fencesAlways(settings: EtcdSettings, fence: JoinSettings['fence'], log: Log): Promise<boolean> {
  const version = await etcdVersion({ ...settings, clock: systemClock });
  const isDoubtful = version !== undefined && mayEndLeasesEarly(version);
  if (isDoubtful && fence === 'trust') log.warn('etcd may end leases early, and is trusted not to', { version });
  if (isDoubtful && fence === undefined) {
    log.warn('etcd may end leases early: lost nodes are replaced 2.5 s later; upgrade it', { version });
  }
  return fence === 'always' || (isDoubtful && fence === undefined);
}

async function startInCluster(args: Arguments, terminal: Terminal, signal: AbortSignal): Promise<RunningNode> {
  const settings = await etcdSettings(args, terminal);
  const log = stderrLog(terminal, { cluster: settings.name });
  const { host, port, advertise, wire, joining, node, fence } = joinSettings(args);
  const fences = await fencesAlways(settings, fence, log);
  const certificates = await wireCertificates(args);
  const door = advertise?.includes(':') === true ? `[${advertise}]:${port}` : `${advertise}:${port}`;
  return await startJoinedNode({
    ...surroundings(terminal, log),
    fencesAlways: fences,
    name: settings.name,
    mapStore: openEtcd(settings, terminal),
    folder: need(args, 'data'),
    host,
    port,
    wire: certificates === undefined ? wire : { ...wire, certificates },
    joining,
    signal,
    ...(advertise === undefined ? {} : { doorAdvertise: door }),
    ...(node === undefined ? {} : { node }),
  });
}

async function serve(args: Arguments, terminal: Terminal, stop: AbortSignal): Promise<void> {
  const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }));
  const joins = args.text('host') === undefined;
  const running = joins ? await startInCluster(args, terminal, stop) : await startOwned(args, terminal);
  await Promise.race([running.serving(systemClock), stopped]);
  if (!stop.aborted) {
    tell({ type: 'ready', node: running.node, address: running.address });
    await stopped;
  }
  await running[Symbol.asyncDispose]();
}

/** One node's process; no command for people, so it has no summary. */
export const nodeProcess: Command = {
  name: 'node-process',
  usage: 'node-process',
  summary: '',
  options: {
    ...JOIN_OPTIONS,
    cluster: { type: 'string', value: 'NAME', about: "the cluster's name; without --join its folder" },
    host: { type: 'string', value: 'ADDRESS', about: 'where clients reach it' },
    port: { type: 'string', value: 'PORT', about: 'likewise' },
  },
  async run(args, terminal) {
    beat();
    const stop = stopSignal();
    try {
      await serve(args, terminal, stop);
    } catch (error) {
      const code = codeOf(error);
      if (!stop.aborted) stderrLog(terminal, {}).error('node cannot start', { reason: messageOf(error) });
      if (code !== undefined) tell({ type: 'failed', code, message: messageOf(error) });
      process.exit(stop.aborted ? EXIT.OK : exitCodeOf(error));
    }
    // what a library, or the supervisor's channel, still holds open must not keep a stopped node
    process.exit(EXIT.OK);
  },
};
