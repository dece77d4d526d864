import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { benchBlog, PUBLISHED, s3Target } from '@webdfs/bench';
import { type RunningCluster, S3Client, startCluster, type TopologyReport } from '@webdfs/webdfs';
import { clusterDefaults } from '../../cluster-defaults.ts';
import { type Arguments, type Command, UsageError } from '../../command.ts';
import { placementOf } from '../../placement-option.ts';
import type { Terminal } from '../../terminal.ts';
import { outOption, runReport } from './report-run.ts';

const FOLDER = 'blog-2009-report';
const BUCKET = 'blog';
/** Of the published numbers: uploads, and the size of each. */
const SCALE = { full: { uploads: 0.1, sizes: 0.02, kills: 12 }, quick: { uploads: 0.003, sizes: 0.02, kills: 3 } };
const MAX_SEED = 0xffff_ffff;
const LOOK_MS = 1_000;
const PATIENCE_MS = 300_000;

function shareOf(args: Arguments, name: string, fallback: number): number {
  const text = args.text(name);
  const share = Number(text ?? fallback);
  if (!(share > 0 && share <= 1)) throw new UsageError(`--${name} takes a number above 0, at most 1, got ${text}`);
  return share;
}

async function topology(client: S3Client, query?: Record<string, string>): Promise<TopologyReport> {
  const method = query === undefined ? 'GET' : 'POST';
  const request = { method, bucket: '-', key: 'topology', ...(query === undefined ? {} : { query }) } as const;
  return JSON.parse((await client.call(request)).body) as TopologyReport;
}

/** What is asked again until it is answered: twelve nodes that start at once keep a small machine busy. */
async function patiently<T>(ask: () => Promise<T>, terminal: Terminal): Promise<T> {
  const until = systemClock.monotonic() + PATIENCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (systemClock.monotonic() > until) throw error;
      await sleep(systemClock, LOOK_MS, terminal.signal);
    }
  }
}

/** As published the cluster has grown to its sub-clusters, here while it is empty. */
async function growTo(client: S3Client, subclusters: number, terminal: Terminal): Promise<void> {
  const changes = Array.from({ length: subclusters - 1 }, () => `add=${PUBLISHED.nodesPerSubcluster}`).join(' ');
  const wanted = subclusters * PUBLISHED.nodesPerSubcluster;
  const nodesOf = ({ settled }: TopologyReport): number =>
    settled.subclusters.reduce((sum, { nodes }) => sum + nodes.length, 0);
  await patiently(async () => {
    const { revision, target } = await topology(client);
    if (target === undefined) await topology(client, { action: 'change', changes, revision: String(revision) });
  }, terminal);
  for (;;) {
    const seen = await patiently(() => topology(client), terminal);
    if (seen.target === undefined && nodesOf(seen) === wanted) return;
    await sleep(systemClock, LOOK_MS, terminal.signal);
  }
}

function killIn(cluster: RunningCluster): (node: number) => void {
  return (node) => {
    const pid = cluster.nodes().find(({ id }) => id === node)?.pid;
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  };
}

export const benchBlog2009: Command = {
  name: 'bench blog-2009',
  usage: 'bench blog-2009',
  summary: 'Repeats the load test that WebDFS published in 2009, scaled, while nodes are killed: 0 lost, 0 corrupt.',
  details: [
    '15 nodes in 5 sub-clusters of 3, two copies, 8 reads to 2 writes, sizes over the published range, all on this machine in',
    'a temporary folder. Nodes are killed on the way. In the end every object is read and compared, and every node asked for',
    'its copy. Prints the published results beside its own. Ends with 0 if all gates pass, 1 if one fails.',
  ].join('\n'),
  options: {
    uploads: { type: 'string', value: 'SHARE', about: 'of the published 129278; 0.1 if left out' },
    sizes: { type: 'string', value: 'SHARE', about: 'of the published sizes; 0.02 if left out' },
    clients: { type: 'string', value: 'N', about: 'clients at once; 64 if left out' },
    think: { type: 'string', value: 'MS', about: 'they wait up to so long between requests; 100 if left out' },
    kills: { type: 'string', value: 'N', about: 'nodes killed on the way; 12 if left out' },
    placement: { type: 'string', value: 'NAME', about: 'wrd or rush-r (default: wrd)' },
    seed: { type: 'string', value: 'N', about: 'the same number gives the same objects; 1 if left out' },
    data: { type: 'string', value: 'FOLDER', about: 'where the temporary cluster lies' },
    out: outOption(FOLDER),
    quick: { type: 'boolean', about: 'few objects, to see that it works' },
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError('usage: webdfs bench blog-2009');
    const scale = args.flag('quick') ? SCALE.quick : SCALE.full;
    const seed = args.count('seed', 1, { least: 0, most: MAX_SEED });
    const shares = {
      uploads: shareOf(args, 'uploads', scale.uploads),
      sizes: shareOf(args, 'sizes', scale.sizes),
    };
    const load = {
      clients: args.count('clients', 64, { least: 1, most: 1_000 }),
      thinkMs: args.count('think', 100, { least: 0, most: 60_000 }),
      kills: args.count('kills', scale.kills, { least: 0, most: 10_000 }),
    };
    const placement = placementOf(args);
    const folder = await mkdtemp(join(args.text('data') ?? tmpdir(), 'webdfs-blog-'));
    try {
      await using cluster = await startCluster({
        ...(await clusterDefaults(terminal)),
        folder,
        nodes: PUBLISHED.nodesPerSubcluster,
        replicas: PUBLISHED.copies,
        placement,
        buckets: [BUCKET],
      });
      const { endpoint, credentials } = cluster;
      using client = new S3Client({ endpoint, credentials, clock: systemClock, connections: load.clients });
      return await runReport(args, terminal, {
        folder: FOLDER,
        run: async (onProgress) => {
          onProgress('making 15 nodes of 3');
          await growTo(client, PUBLISHED.subclusters, terminal);
          const random = new SeededRandom(seed);
          return await benchBlog({
            target: s3Target({
              client,
              bucket: BUCKET,
              clock: systemClock,
              random,
              kill: killIn(cluster),
              signal: terminal.signal,
            }),
            uploads: Math.max(1, Math.round(PUBLISHED.uploads * shares.uploads)),
            sizeFactor: shares.sizes,
            ...load,
            seed,
            clock: systemClock,
            signal: terminal.signal,
            command:
              `webdfs bench blog-2009 --uploads ${shares.uploads} --sizes ${shares.sizes} --clients ${load.clients} ` +
              `--think ${load.thinkMs} --kills ${load.kills} --placement ${placement} --seed ${seed}`,
            onProgress,
          });
        },
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};
