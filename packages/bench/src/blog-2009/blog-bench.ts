import { type Clock, SeededRandom } from '@webdfs/base';
import { atMost, type Check } from '../report/check.ts';
import { type Cell, environmentOf, numberColumn, type Report, textColumn } from '../report/report.ts';
import { type Audit, auditAll, spreadOf } from './audit.ts';
import { BlogLoad, type LoadFigures, patiently } from './blog-load.ts';
import { Content } from './content.ts';
import { PUBLISHED } from './published.ts';
import type { BlogTarget } from './target.ts';

export interface BlogBenchOptions {
  readonly target: BlogTarget;
  readonly uploads: number;
  /** 1: sizes as published. */
  readonly sizeFactor: number;
  readonly clients: number;
  readonly thinkMs: number;
  readonly kills: number;
  readonly seed: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The words that repeat the run. */
  readonly command: string;
  readonly onProgress: (what: string) => void;
}

/** Of so few objects chance puts more on one node than on another: three times its standard deviation is allowed for it. */
const SIGMAS = 3;

function checksOf(load: LoadFigures, audit: Audit, kills: number): Check[] {
  const { spread, mean } = spreadOf(audit.byNode);
  const chance = SIGMAS / Math.sqrt(Math.max(1, mean));
  return [
    atMost('objects lost', audit.lost, 0, 'objects'),
    atMost('objects corrupt', audit.corrupt + audit.withoutGoodCopy, 0, 'objects'),
    atMost('copies corrupt', audit.copiesCorrupt, 0, 'copies'),
    atMost('copies missing', audit.copiesMissing, 0, 'copies'),
    atMost('reads of wrong bytes', load.wrongReads, 0, 'reads'),
    atMost('requests given up', load.failed, 0, 'requests'),
    atMost('kills that did not come about', kills - load.killed.length, 0, 'kills'),
    atMost('spread between nodes, 5 % and what chance adds', spread, PUBLISHED.spread + chance, 'of the mean'),
  ];
}

function rowsOf(options: BlogBenchOptions, load: LoadFigures, audit: Audit, bytesOnDisk: number): Cell[][] {
  const p = PUBLISHED;
  const { fewest, most, mean, spread } = spreadOf(audit.byNode);
  const copies = load.uploads * p.copies;
  const requests = (uploads: number, downloads: number): number => p.copies * uploads + downloads;
  const published = requests(p.uploads, p.downloads);
  const ours = requests(load.uploads, load.downloads);
  const transferred = load.uploadedBytes + load.downloadedBytes;
  const rates = (bytes: number, seconds: number): number => bytes / seconds / 1e6;
  const publishedSpread = Math.max(p.mostOnNode - p.meanOnNode, p.meanOnNode - p.fewestOnNode) / p.meanOnNode;
  return [
    ['clients', p.clients, options.clients],
    ['seconds', p.seconds, load.seconds],
    ['requests, each copy of an upload counted', published, ours],
    ['requests a second', published / p.seconds, ours / load.seconds],
    ['uploads', p.uploads, load.uploads],
    ['copies of them', p.uploads * p.copies, copies],
    ['downloads', p.downloads, load.downloads],
    ['mean size of an upload, bytes', p.uploadedBytes / p.uploads, load.uploadedBytes / Math.max(1, load.uploads)],
    ['uploads, MB/s', rates(p.uploadedBytes, p.seconds), rates(load.uploadedBytes, load.seconds)],
    ['all transfer, MB/s', rates(p.transferredBytes, p.seconds), rates(transferred, load.seconds)],
    ['bytes on disk', p.bytesOnDisk, bytesOnDisk],
    ['copies lost', p.copiesLost, audit.copiesMissing],
    ['copies corrupt', p.copiesCorrupt, audit.copiesCorrupt],
    ['objects corrupt in all copies, or lost', p.objectsCorrupt, audit.withoutGoodCopy + audit.lost + audit.corrupt],
    ['fewest copies on a node', p.fewestOnNode, fewest],
    ['most copies on a node', p.mostOnNode, most],
    ['mean', p.meanOnNode, mean],
    ['spread, % of the mean', publishedSpread * 100, spread * 100],
    ['nodes killed on the way', null, load.killed.length],
    ['requests sent again', null, load.retries],
    ['requests given up', null, load.failed],
    ['longest request, its retries included, s', null, load.longestMs / 1_000],
  ];
}

/**
 * The published load test, scaled: the same mix, the same shape of sizes, nodes killed on the way; then every object is read
 * and compared, and every node asked for its copy. Passes with nothing lost, nothing corrupt, and an even spread.
 */
export async function benchBlog(options: BlogBenchOptions): Promise<Report> {
  const environment = environmentOf(options);
  const { target, seed, sizeFactor, onProgress } = options;
  const content = new Content(seed, sizeFactor);
  await target.settled();
  const load = new BlogLoad({ ...options, content, random: new SeededRandom(seed) });
  await load.run();
  onProgress('waiting for the nodes that were killed');
  await target.settled();
  const { acknowledged, figures } = load;
  const audit = await auditAll(target, content, {
    acknowledged,
    copies: PUBLISHED.copies,
    patiently: (ask) => patiently(ask, options),
    onProgress,
  });
  const rows = rowsOf(options, figures, audit, await patiently(() => target.bytesOnDisk(), options));
  const { firstFailure } = figures;
  return {
    format: 'webdfs-report',
    version: 1,
    title: 'The load test of 2009',
    summary: [
      `${figures.uploads} uploads, ${figures.downloads} downloads, ${figures.killed.length} nodes killed on the way: ` +
        `${audit.lost} objects lost, ${audit.corrupt + audit.withoutGoodCopy} corrupt.`,
      ...(firstFailure === undefined ? [] : [`The first request that was given up: ${firstFailure}`]),
    ],
    environment,
    sections: [
      {
        id: 'results',
        title: 'As published in 2009, and now',
        prose: [
          '15 nodes in 5 sub-clusters of 3, two copies, 8 reads to 2 writes. The published run had 20 machines of its own and files of 50 KB ' +
            `to 10 MB; here all is on one machine, sizes times ${sizeFactor}, clients wait up to ${options.thinkMs} ms. Rates do not compare; losses do.`,
        ],
        charts: [],
        tables: [
          {
            id: 'rows',
            title: 'Results',
            columns: [textColumn('result'), numberColumn('2009', 1), numberColumn('this run', 1)],
            rows,
          },
          {
            id: 'nodes',
            title: 'Copies by node',
            columns: [numberColumn('node'), numberColumn('copies')],
            rows: [...audit.byNode].toSorted(([a], [b]) => a - b).map(([node, copies]) => [node, copies]),
          },
        ],
      },
    ],
    checks: checksOf(figures, audit, options.kills),
  };
}
