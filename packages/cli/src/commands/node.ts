import { asNodeId, makeLog, messageOf, NodeDisk, systemClock, SystemRandom } from '@webdfs/base';
import { BEAT_MS, credentialsFrom, type FromNode, isToNode, type RunningNode, startNode } from '@webdfs/webdfs';
import { type Arguments, type Command, EXIT, UsageError } from '../command.ts';
import { logLevelOf } from '../log-level.ts';
import type { Terminal } from '../terminal.ts';

function need(args: Arguments, name: string): string {
  const value = args.text(name);
  if (value === undefined) throw new UsageError(`node lacks --${name}: it is started by webdfs up`);
  return value;
}

function tell(message: FromNode): void {
  if (process.connected) process.send?.(message);
}

function beat(): void {
  tell({ type: 'beat' });
  systemClock.after(BEAT_MS, beat);
}

/** Resolves when the supervisor says so, or is gone. */
function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (message) => {
      if (isToNode(message)) resolve();
    });
    process.on('disconnect', () => resolve());
  });
}

function start(args: Arguments, terminal: Terminal): Promise<RunningNode> {
  const node = asNodeId(args.count('id', 0, { least: 1, most: 65_535 }));
  const log = makeLog({
    write: (line) => terminal.errors.write(`${line}\n`),
    now: () => systemClock.now(),
    least: logLevelOf(terminal.environment),
    fields: { node },
  });
  const domain = terminal.environment['WEBDFS_DOMAIN'];
  return startNode({
    node,
    folder: need(args, 'data'),
    cluster: need(args, 'cluster'),
    host: need(args, 'host'),
    port: args.count('port', 0, { least: 1, most: 65_535 }),
    credentials: credentialsFrom(terminal.environment),
    domains: domain === undefined ? [] : [domain],
    pid: process.pid,
    disk: new NodeDisk(),
    clock: systemClock,
    random: new SystemRandom(),
    log,
    onFatal(error) {
      log.error('node ends', { reason: messageOf(error) });
      process.exit(EXIT.FAILED);
    },
  });
}

/** One node's process; no command for people, so it has no summary. */
export const node: Command = {
  name: 'node',
  usage: 'node',
  summary: '',
  options: {
    data: { type: 'string', value: 'FOLDER', about: "the node's own folder" },
    id: { type: 'string', value: 'N', about: "the node's number" },
    cluster: { type: 'string', value: 'FOLDER', about: "the cluster's folder" },
    host: { type: 'string', value: 'ADDRESS', about: 'where clients reach it' },
    port: { type: 'string', value: 'PORT', about: 'likewise' },
  },
  async run(args, terminal) {
    beat();
    const stopped = untilStopped();
    const running = await start(args, terminal);
    await running.serving(systemClock);
    tell({ type: 'ready', address: running.address });
    await stopped;
    await running[Symbol.asyncDispose]();
    // what a library still holds open must not keep a stopped node
    process.exit(EXIT.OK);
  },
};
