import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { NodeDisk, systemClock, WebdfsError } from '@webdfs/base';
import { type RunningMember, startJoined } from '@webdfs/webdfs';
import { nodeProgram } from '../cluster-defaults.ts';
import { type Arguments, type Command, EXIT, UsageError } from '../command.ts';
import { etcdSettings } from '../etcd-options.ts';
import { JOIN_OPTIONS, joinSettings } from '../join-options.ts';
import { stderrLog } from '../log-level.ts';
import { wireCertificates } from '../wire-certificates.ts';
import { printJson, printLine, type Terminal } from '../terminal.ts';

const TOKEN_OPTION = {
  'token-file': {
    type: 'string',
    value: 'FILE',
    about: 'holds what "webdfs cluster token" printed; needed once (WEBDFS_TOKEN)',
  },
} as const;

async function tokenIn(args: Arguments, terminal: Terminal): Promise<string | undefined> {
  const path = args.text('token-file');
  if (path === undefined) return terminal.environment['WEBDFS_TOKEN'];
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new WebdfsError('BAD_CONFIG', `--token-file ${path} cannot be read`, { cause: error });
  }
}

/** The words for the node's own process: those that were given, less what only its supervisor wants. */
function wordsOf(args: Arguments, folder: string): string[] {
  const words = ['--data', folder];
  for (const name of Object.keys(JOIN_OPTIONS)) {
    const value = args.text(name);
    if (name !== 'data' && value !== undefined) words.push(`--${name}`, value);
  }
  return words;
}

/** The token must not stay in the environment of a process that lives for months. */
function withoutToken(environment: Terminal['environment']): Terminal['environment'] {
  return { ...environment, WEBDFS_TOKEN: undefined };
}

function announce(member: RunningMember, folder: string, terminal: Terminal): void {
  const { node, pid, address, endpoint, credentials } = member;
  if (terminal.json) {
    printJson(terminal, { ready: true, node, pid, address, endpoint, data: folder, ...credentials });
    return;
  }
  const lines = [
    `WebDFS node ${node} is ready: ${endpoint}`,
    '',
    `  other nodes reach it at  ${address}`,
    `  data and keys            ${folder}`,
    '',
    `"webdfs status --data ${folder}" shows the cluster. Ctrl-C stops this node.`,
  ];
  for (const line of lines) printLine(terminal, line);
}

export const node: Command = {
  name: 'node',
  usage: 'node --join etcd://HOST:PORT --cluster NAME --listen HOST:PORT --data FOLDER',
  summary: 'Runs a node of a cluster on several machines.',
  details: [
    'The cluster was announced with "webdfs cluster init"; it is made when as many nodes have joined as that said.',
    'The folder keeps the keys and the data. A node that is started again needs neither token nor --id.',
    'WEBDFS_ETCD_USER and WEBDFS_ETCD_PASSWORD log in to etcd.',
  ].join('\n'),
  options: { ...JOIN_OPTIONS, ...TOKEN_OPTION },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError(`node takes no ${args.positionals[0]}`);
    // whatever is wrong with the words is told here, not by a process that is started again and again
    await etcdSettings(args, terminal);
    await wireCertificates(args);
    const { host, port, advertise } = joinSettings(args);
    const data = args.text('data');
    if (data === undefined) throw new UsageError('say where its data goes with --data FOLDER');
    const folder = resolve(data);
    await using member = await startJoined({
      folder,
      token: await tokenIn(args, terminal),
      host,
      port,
      advertise,
      command: [...nodeProgram(), ...wordsOf(args, folder)],
      environment: withoutToken(terminal.environment),
      disk: new NodeDisk(),
      clock: systemClock,
      log: stderrLog(terminal, { process: 'supervisor' }),
      signal: terminal.signal,
    });
    announce(member, folder, terminal);
    await member.ended;
    return EXIT.OK;
  },
};
