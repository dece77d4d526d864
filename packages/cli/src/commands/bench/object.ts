import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock, SystemRandom } from '@webdfs/base';
import { benchObjects, cellText, type MeasuredTarget, OBJECT_COLUMNS, objectCells } from '@webdfs/bench';
import { credentialsFrom, type RunningCluster, startCluster } from '@webdfs/webdfs';
import { type Arguments, type Command, UsageError } from '../../command.ts';
import { clusterDefaults } from '../../cluster-defaults.ts';
import type { Terminal } from '../../terminal.ts';
import { outOption, runReport } from './report-run.ts';

const FOLDER = 'object-report';
const SIZES = [4096, 131_072, 1_048_576, 10_485_760];

/** `name=radosgw,endpoint=http://…,access=…,secret=…,pids=COMMAND`; the command prints the server's process ids. */
function peerOf(text: string): MeasuredTarget {
  const fields = new Map(
    text.split(',').map((field): [string, string] => {
      const at = field.indexOf('=');
      return [field.slice(0, at), field.slice(at + 1)];
    }),
  );
  const need = (name: string): string => {
    const value = fields.get(name);
    if (value === undefined || value === '') throw new UsageError(`--peer lacks ${name}=…`);
    return value;
  };
  const command = fields.get('pids');
  return {
    name: need('name'),
    endpoint: need('endpoint'),
    accessKeyId: need('access'),
    secretAccessKey: need('secret'),
    async pids() {
      if (command === undefined) return [];
      const { stdout } = await promisify(execFile)('sh', ['-c', command]);
      return stdout
        .split(/\s+/)
        .filter((word) => word !== '')
        .map(Number);
    },
  };
}

function numbersOf(text: string | undefined, fallback: readonly number[]): number[] {
  const numbers = text === undefined ? [...fallback] : text.split(',').map(Number);
  if (numbers.some((number) => !Number.isInteger(number) || number < 1))
    throw new UsageError(`expected whole numbers, got ${text}`);
  return numbers;
}

/** The words that repeat the run; of other stores only their names, for the rest of their words is secret. */
function commandOf(args: Arguments, peers: readonly MeasuredTarget[]): string {
  const given = ['endpoint', 'sizes', 'connections', 'seconds', 'warm-up', 'rounds'].flatMap((name) => {
    const value = args.text(name);
    return value === undefined ? [] : [`--${name} ${value}`];
  });
  const others = peers.map(({ name }) => `--peer name=${name},…`);
  return ['webdfs bench object', ...given, ...others, ...(args.flag('quick') ? ['--quick'] : [])].join(' ');
}

async function ownTarget(
  terminal: Terminal,
  folder: string,
): Promise<{ target: MeasuredTarget; cluster: RunningCluster }> {
  const cluster = await startCluster({
    ...(await clusterDefaults(terminal)),
    folder,
    nodes: 3,
    replicas: 3,
    placement: 'wrd',
    buckets: [],
  });
  const target: MeasuredTarget = {
    name: 'webdfs',
    endpoint: cluster.endpoint,
    ...cluster.credentials,
    pids: async () => cluster.nodes().flatMap((node) => (node.pid === undefined ? [] : [node.pid])),
  };
  return { target, cluster };
}

async function measureAll(
  args: Arguments,
  terminal: Terminal,
  own: MeasuredTarget,
  peers: readonly MeasuredTarget[],
): Promise<number> {
  const quick = args.flag('quick');
  return await runReport(args, terminal, {
    folder: FOLDER,
    run: async () =>
      await benchObjects({
        targets: [own, ...peers],
        sizes: numbersOf(args.text('sizes'), quick ? [4096, 1_048_576] : SIZES),
        connections: numbersOf(args.text('connections'), quick ? [8] : [8, 32]),
        seconds: args.count('seconds', quick ? 2 : 6, { least: 1, most: 600 }),
        warmUpSeconds: args.count('warm-up', quick ? 2 : 15, { least: 1, most: 600 }),
        rounds: args.count('rounds', quick ? 1 : 3, { least: 1, most: 99 }),
        clock: systemClock,
        random: new SystemRandom(),
        command: commandOf(args, peers),
        onRow: (row) => {
          const cells = objectCells(row).map((cell, i) => cellText(cell, OBJECT_COLUMNS[i]!));
          terminal.errors.write(`${cells.join('  ')}\n`);
        },
      }),
  });
}

export const benchObject: Command = {
  name: 'bench object',
  usage: 'bench object',
  summary: 'Measures PUT and GET over S3: rate, latency, and server CPU per operation.',
  details: [
    'Without --endpoint it starts a cluster of three nodes in a temporary folder. --peer measures another store in the',
    'same run: --peer name=radosgw,endpoint=http://127.0.0.1:7480,access=KEY,secret=SECRET,pids=COMMAND (may be repeated;',
    'COMMAND prints the process ids whose CPU time counts). Ends with 0 if all gates pass, 1 if one fails, 2 if the run is',
    'not valid.',
  ].join('\n'),
  options: {
    endpoint: {
      type: 'string',
      value: 'URL',
      about: 'measure this store (keys: WEBDFS_ACCESS_KEY_ID, WEBDFS_SECRET_ACCESS_KEY)',
    },
    peer: { type: 'string', multiple: true, value: 'FIELDS', about: 'another store for the same run, see above' },
    sizes: { type: 'string', value: 'N,…', about: 'object sizes in bytes' },
    connections: { type: 'string', value: 'N,…', about: 'connections at once' },
    seconds: { type: 'string', value: 'N', about: 'length of each measurement' },
    'warm-up': { type: 'string', value: 'N', about: 'seconds before the first measurement' },
    rounds: { type: 'string', value: 'N', about: 'rounds; the middle one counts' },
    data: { type: 'string', value: 'FOLDER', about: 'where the temporary cluster lies: choose the disk to measure' },
    out: outOption(FOLDER),
    quick: { type: 'boolean', about: 'few and short measurements, to see that it works' },
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError('usage: webdfs bench object');
    const peers = args.texts('peer').map(peerOf);
    const endpoint = args.text('endpoint');
    if (endpoint !== undefined) {
      const credentials = credentialsFrom(terminal.environment);
      if (credentials === undefined)
        throw new UsageError('--endpoint needs WEBDFS_ACCESS_KEY_ID and WEBDFS_SECRET_ACCESS_KEY');
      return await measureAll(
        args,
        terminal,
        { name: 'webdfs', endpoint, ...credentials, pids: async () => [] },
        peers,
      );
    }
    const folder = await mkdtemp(join(args.text('data') ?? tmpdir(), 'webdfs-bench-'));
    try {
      const { target, cluster } = await ownTarget(terminal, folder);
      await using _ = cluster;
      return await measureAll(args, terminal, target, peers);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};
