import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { codeOf, NodeDisk, WebdfsError } from '@webdfs/base';
import { readSecrets, replaceToken, type TokenReport, tokenOf } from '@webdfs/webdfs';
import { type Arguments, type Command, EXIT, UsageError } from '../../command.ts';
import { connect, DEFAULT_DATA } from '../../remote.ts';
import { printJson, printLine, type Terminal } from '../../terminal.ts';

const ACTIONS = ['rotate', 'end', 'status', 'replace'] as const;
type Action = (typeof ACTIONS)[number];

async function show(folder: string, terminal: Terminal, report?: TokenReport): Promise<void> {
  let token: string;
  try {
    token = tokenOf(await readSecrets(new NodeDisk(), folder));
  } catch (error) {
    if (codeOf(error) !== 'NOT_FOUND') throw error;
    throw new WebdfsError('NOT_FOUND', `${folder} holds no keys of a cluster`, { cause: error });
  }
  if (terminal.json) printJson(terminal, { token, ...report });
  else printLine(terminal, token);
}

function tell({ name, others, nodes }: TokenReport, terminal: Terminal): void {
  printLine(terminal, `secret ${name} is in use`);
  for (const other of others) printLine(terminal, `secret ${other.name} is accepted until ${other.until}`);
  for (const { node, name: theirs, why } of nodes) {
    if (theirs === undefined) printLine(terminal, `node ${node} does not answer: ${why}`);
    else if (theirs !== name) printLine(terminal, `node ${node} uses ${theirs}`);
  }
}

async function ask(action: Action, args: Arguments, terminal: Terminal): Promise<TokenReport> {
  using client = await connect(args, terminal);
  const hours = args.text('overlap-hours');
  const query = {
    action,
    without: args.texts('without').join(','),
    ...(hours === undefined ? {} : { 'overlap-hours': hours }),
  };
  const method = action === 'status' ? 'GET' : 'POST';
  const { body } = await client.call({ method, bucket: '-', key: 'token', ...(method === 'POST' ? { query } : {}) });
  return JSON.parse(body) as TokenReport;
}

async function replace(args: Arguments, folder: string, terminal: Terminal): Promise<void> {
  const path = args.text('token-file');
  const token = path === undefined ? terminal.environment['WEBDFS_TOKEN'] : await readFile(path, 'utf8');
  if (token === undefined)
    throw new UsageError('name the file of the new token with --token-file, or set WEBDFS_TOKEN');
  await replaceToken(new NodeDisk(), folder, token);
  if (terminal.json) printJson(terminal, { replaced: folder });
  else printLine(terminal, `${folder} has the new token; start its node`);
}

export const clusterToken: Command = {
  name: 'cluster token',
  usage: 'cluster token [rotate|end|status|replace] --data FOLDER',
  summary:
    'Prints the token by which machines join the cluster of a node, or of "webdfs up", on this one; or changes it.',
  details: [
    'Whoever has the token can be a node and owns all data: hand it over like a password.',
    '"rotate" makes a new one and has all nodes use it, without a restart; the old one is accepted for --overlap-hours, or',
    'until "end". A node that was away for longer is given the new one with "replace", before it is started. The keys of S3',
    'clients stay as they are.',
  ].join('\n'),
  options: {
    data: {
      type: 'string',
      value: 'FOLDER',
      about: 'data folder of a node, or of "webdfs up" (default: ./webdfs-data)',
    },
    'overlap-hours': { type: 'string', value: 'N', about: 'rotate: how long the old one is accepted (default: 24)' },
    without: { type: 'string', multiple: true, value: 'N', about: 'rotate: node N may be missing; may be repeated' },
    'token-file': { type: 'string', value: 'FILE', about: 'replace: holds the new token (WEBDFS_TOKEN)' },
  },
  async run(args, terminal) {
    const [word, ...more] = args.positionals;
    const action = ACTIONS.find((each) => each === word);
    if (more.length > 0 || (word !== undefined && action === undefined)) {
      throw new UsageError(`usage: webdfs ${clusterToken.usage}`);
    }
    const folder = resolve(args.text('data') ?? DEFAULT_DATA);
    if (action === 'replace') await replace(args, folder, terminal);
    else if (action === undefined) await show(folder, terminal);
    else {
      const report = await ask(action, args, terminal);
      if (action === 'rotate') await show(folder, terminal, report);
      else if (terminal.json) printJson(terminal, report);
      else tell(report, terminal);
    }
    return EXIT.OK;
  },
};
