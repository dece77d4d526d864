import { systemClock } from '@webdfs/base';
import { benchRescale, RESCALE_EXPERIMENTS, SIMULATED_EXPERIMENTS } from '@webdfs/bench';
import { type Command, UsageError } from '../../command.ts';
import { chanceOf, commandOf, experimentOptions, experimentsOf } from './experiment-options.ts';
import { runReport } from './report-run.ts';
import { benchCluster, CLUSTER_OPTIONS } from './rescale-cluster.ts';

const FOLDER = 'rescale-report';
const MAX_SEEDS = 20;

export const benchRescaleCommand: Command = {
  name: 'bench rescale',
  usage: 'bench rescale',
  summary: 'Measures growing and shrinking against the physical bound: Pufferbench reborn.',
  details: [
    'Needs no cluster: the plans and the mover of WebDFS run in simulated time, beside HDFS’s manner and two bad schedulers.',
    'Prints tables and writes report.html (charts), report.json and a CSV file per table. Ends with 0 if all gates pass, 1 if one fails.',
    '',
    `Experiments: ${RESCALE_EXPERIMENTS.join(', ')}. The last three start a process for each node, with real sockets, and take`,
    'minutes; unless asked for they are left out. Ends with 2 if the machine was too busy for them.',
    '',
    'With --cluster a running WebDFS is the target: mixed objects are stored (--load), its shape is changed (--add, --remove or',
    '--change) while clients read and write, and what its history tells is reported the same way; then every object and copy is',
    'verified. Keys come from the environment or the data folder, as for other commands.',
  ].join('\n'),
  options: {
    ...experimentOptions({
      folder: FOLDER,
      seeds: 'so many repetitions; 3, or 1 with --quick',
      quick: 'a look: fewer points, within a minute',
    }),
    ...CLUSTER_OPTIONS,
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError('usage: webdfs bench rescale');
    const chance = chanceOf(args, { mostSeeds: MAX_SEEDS });
    if (args.text('cluster') !== undefined) return await benchCluster(args, terminal, chance.seed);
    const experiments = experimentsOf(args, RESCALE_EXPERIMENTS, SIMULATED_EXPERIMENTS);
    return await runReport(args, terminal, {
      folder: FOLDER,
      run: async (onProgress) =>
        await benchRescale({
          experiments,
          ...chance,
          clock: systemClock,
          command: commandOf('bench rescale', args, ['experiments'], chance),
          signal: terminal.signal,
          onProgress,
        }),
    });
  },
};
