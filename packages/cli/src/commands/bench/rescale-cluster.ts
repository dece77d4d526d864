import { systemClock, SystemRandom } from '@webdfs/base';
import { type ClusterRunOptions, clusterReport, runCluster } from '@webdfs/bench';
import { S3Client } from '@webdfs/webdfs/remote';
import { byteRateOf, bytesOf } from '../../amounts.ts';
import { type Arguments, type Option, UsageError } from '../../command.ts';
import { remoteOf } from '../../remote.ts';
import type { Terminal } from '../../terminal.ts';
import { runReport } from './report-run.ts';

/** `bench rescale --cluster`: a running WebDFS changes its shape, and is measured. */

const FOLDER = 'rescale-cluster-report';
const MAX_NODES = 1_000;

export const CLUSTER_OPTIONS = {
  cluster: { type: 'string', value: 'ENDPOINT', about: 'have this running WebDFS change its shape, and measure that' },
  data: { type: 'string', value: 'FOLDER', about: 'cluster: the folder of "webdfs up", for its keys' },
  add: { type: 'string', value: 'N', about: 'cluster: so many more nodes (of "webdfs up")' },
  remove: { type: 'string', value: 'NODES', about: 'cluster: without these, such as 7,8' },
  change: { type: 'string', value: 'WORDS', about: 'cluster: any change, in the words of "webdfs plan"' },
  load: { type: 'string', value: 'BYTES', about: 'cluster: store mixed objects before, such as 2GiB' },
  limit: {
    type: 'string',
    value: 'BYTES',
    about: 'cluster: a second, in and out of each node, for this run; such as 4MiB',
  },
  clients: { type: 'string', value: 'N', about: 'cluster: that read and write meanwhile; 2 if left out, 0: none' },
  pause: { type: 'string', value: 'MS', about: 'cluster: between the requests of a client; 50 if left out' },
} as const satisfies Record<string, Option>;

function changesOf(args: Arguments): ClusterRunOptions['changesOf'] {
  const given = ['add', 'remove', 'change'].filter((name) => args.text(name) !== undefined);
  if (given.length !== 1) throw new UsageError('say one of --add N, --remove NODES, --change WORDS');
  const remove = args.text('remove');
  if (remove !== undefined) return () => `remove=${remove}`;
  const change = args.text('change');
  if (change !== undefined) return () => change;
  const count = args.count('add', 1, { least: 1, most: MAX_NODES });
  return ({ settled }) => `add=${count},to=${settled.subclusters.at(-1)?.id ?? 1}`;
}

function commandOf(args: Arguments, seed: number): string {
  const words = Object.keys(CLUSTER_OPTIONS).flatMap((name) => {
    const value = args.text(name);
    return value === undefined || name === 'data' ? [] : [`--${name} ${value}`];
  });
  return ['bench rescale', ...words, `--seed ${seed}`].join(' ');
}

/** @param seed  of the objects that are stored */
export async function benchCluster(args: Arguments, terminal: Terminal, seed: number): Promise<number> {
  const { endpoint: _, credentials } = await remoteOf(args, terminal);
  const endpoint = args.text('cluster')!;
  const limit = args.text('limit');
  const load = args.text('load');
  const command = commandOf(args, seed);
  const change = changesOf(args);
  const clients = args.count('clients', 2, { least: 0, most: 64 });
  const pauseMs = args.count('pause', 50, { least: 1, most: 60_000 });
  using client = new S3Client({ endpoint, credentials, clock: systemClock });
  return await runReport(args, terminal, {
    folder: FOLDER,
    run: async (onProgress) =>
      clusterReport(
        await runCluster({
          client,
          changesOf: change,
          command,
          loadBytes: load === undefined ? 0 : bytesOf(load),
          capBytes: limit === undefined ? undefined : byteRateOf(limit),
          clients,
          pauseMs,
          seed,
          clock: systemClock,
          random: new SystemRandom(),
          signal: terminal.signal,
          onProgress,
        }),
        { command: `webdfs ${command}`, seed, clock: systemClock },
      ),
  });
}
