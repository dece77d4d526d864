import { systemClock } from '@webdfs/base';
import { benchRescale, RESCALE_EXPERIMENTS, SIMULATED_EXPERIMENTS } from '@webdfs/bench';
import { type Arguments, type Command, UsageError } from '../../command.ts';
import { outOption, runReport } from './report-run.ts';

const FOLDER = 'rescale-report';
const MAX_SEED = 0xffff_ffff;
const MAX_SEEDS = 20;

function experimentsOf(args: Arguments): (typeof RESCALE_EXPERIMENTS)[number][] {
  const text = args.text('experiments');
  if (text === undefined) return [...SIMULATED_EXPERIMENTS];
  return text.split(',').map((word) => {
    const known = RESCALE_EXPERIMENTS.find((experiment) => experiment === word.trim());
    if (known === undefined) {
      throw new UsageError(`there is no experiment ${word}, only ${RESCALE_EXPERIMENTS.join(', ')}`);
    }
    return known;
  });
}

/** The words that give the same figures again. */
function commandOf(args: Arguments, seed: number, seeds: number): string {
  const experiments = args.text('experiments');
  const given = experiments === undefined ? [] : [`--experiments ${experiments}`];
  const quick = args.flag('quick') ? ['--quick'] : [];
  return ['webdfs bench rescale', ...given, `--seed ${seed}`, `--seeds ${seeds}`, ...quick].join(' ');
}

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
  ].join('\n'),
  options: {
    experiments: { type: 'string', value: 'NAME,…', about: 'run these, see above' },
    seed: { type: 'string', value: 'N', about: 'the same number gives the same figures; 1 if left out' },
    seeds: { type: 'string', value: 'N', about: 'so many repetitions; 3, or 1 with --quick' },
    out: outOption(FOLDER),
    quick: { type: 'boolean', about: 'a look: fewer points, within a minute' },
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError('usage: webdfs bench rescale');
    const quick = args.flag('quick');
    const seed = args.count('seed', 1, { least: 0, most: MAX_SEED });
    const seeds = args.count('seeds', quick ? 1 : 3, { least: 1, most: MAX_SEEDS });
    const experiments = experimentsOf(args);
    return await runReport(args, terminal, {
      folder: FOLDER,
      run: async (onProgress) =>
        await benchRescale({
          experiments,
          seed,
          seeds,
          quick,
          clock: systemClock,
          command: commandOf(args, seed, seeds),
          signal: terminal.signal,
          onProgress,
        }),
    });
  },
};
