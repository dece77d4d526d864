import { basename } from 'node:path';
import { systemClock } from '@webdfs/base';
import { benchPlacement, CONTESTANTS, EXPERIMENTS, USUAL_CONTESTANTS } from '@webdfs/bench';
import { type Command, UsageError } from '../../command.ts';
import { readTopologyFile } from '../../topology-file.ts';
import { chanceOf, commandOf, experimentOptions, experimentsOf, listOf } from './experiment-options.ts';
import { runReport } from './report-run.ts';

const FOLDER = 'placement-report';
const MAX_SEEDS = 100;

type Options = Parameters<typeof benchPlacement>[0];

/** The experiments choose algorithms themselves and publish for each; of a file only the cluster counts. */
async function clusterOf(path: string): Promise<{ seed: number; topology: NonNullable<Options['topology']> }> {
  const { topology, groupBits } = await readTopologyFile(path);
  const { subclusters, copies, domain, seed } = topology;
  const name = basename(path);
  const bare = { name, subclusters, copies, groupCount: 2 ** groupBits, ...(domain === undefined ? {} : { domain }) };
  return { seed, topology: bare };
}

export const benchPlacementCommand: Command = {
  name: 'bench placement',
  usage: 'bench placement',
  summary: 'Reruns the published placement experiments: balance, failure, what moves, look-up cost.',
  details: [
    'Needs no cluster. Prints tables and writes report.html (charts), report.json and a CSV file per table. Without --topology',
    'it takes the set-ups of the publications: 15 nodes of weights 1, 2, 4, and 12 racks of 8 nodes.',
    '',
    `Algorithms: ${CONTESTANTS.join(', ')}.`,
    `Experiments: ${EXPERIMENTS.join(', ')}.`,
  ].join('\n'),
  options: {
    algorithms: { type: 'string', value: 'NAME,…', about: 'compare these, see above' },
    topology: { type: 'string', value: 'FILE', about: 'put the cluster of this file through it (as for webdfs plan)' },
    ...experimentOptions({
      folder: FOLDER,
      seeds: 'means over so many seeds; 3, or 1 with --quick',
      quick: 'a look: fewer groups, sizes and runs, within a minute',
    }),
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError('usage: webdfs bench placement');
    const path = args.text('topology');
    const file = path === undefined ? undefined : await clusterOf(path);
    const chance = chanceOf(args, { mostSeeds: MAX_SEEDS, ...(file === undefined ? {} : { seed: file.seed }) });
    return await runReport(args, terminal, {
      folder: FOLDER,
      run: async (onProgress) =>
        await benchPlacement({
          algorithms: listOf(args, 'algorithms', USUAL_CONTESTANTS),
          experiments: experimentsOf(args, EXPERIMENTS, EXPERIMENTS),
          ...(file === undefined ? {} : { topology: file.topology }),
          ...chance,
          clock: systemClock,
          command: commandOf('bench placement', args, ['algorithms', 'topology', 'experiments'], chance),
          signal: terminal.signal,
          onProgress,
        }),
    });
  },
};
