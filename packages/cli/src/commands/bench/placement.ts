import { basename } from 'node:path';
import { systemClock } from '@webdfs/base';
import { benchPlacement, CONTESTANTS, EXPERIMENTS, USUAL_CONTESTANTS } from '@webdfs/bench';
import { type Arguments, type Command, UsageError } from '../../command.ts';
import { readTopologyFile } from '../../topology-file.ts';
import { outOption, runReport } from './report-run.ts';

const FOLDER = 'placement-report';
const MAX_SEED = 0xffff_ffff;
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

function listOf(args: Arguments, option: string, fallback: readonly string[]): string[] {
  const text = args.text(option);
  return text === undefined ? [...fallback] : text.split(',').map((name) => name.trim());
}

function experimentsOf(args: Arguments): (typeof EXPERIMENTS)[number][] {
  return listOf(args, 'experiments', EXPERIMENTS).map((name) => {
    const known = EXPERIMENTS.find((experiment) => experiment === name);
    if (known === undefined) throw new UsageError(`there is no experiment ${name}, only ${EXPERIMENTS.join(', ')}`);
    return known;
  });
}

/** The words that give the same figures again. */
function commandOf(args: Arguments, seed: number, seeds: number): string {
  const given = ['algorithms', 'topology', 'experiments'].flatMap((name) => {
    const value = args.text(name);
    return value === undefined ? [] : [`--${name} ${value}`];
  });
  const quick = args.flag('quick') ? ['--quick'] : [];
  return ['webdfs bench placement', ...given, `--seed ${seed}`, `--seeds ${seeds}`, ...quick].join(' ');
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
    experiments: { type: 'string', value: 'NAME,…', about: 'run these, see above' },
    topology: { type: 'string', value: 'FILE', about: 'put the cluster of this file through it (as for webdfs plan)' },
    seed: { type: 'string', value: 'N', about: 'the same number gives the same figures; 1 if left out' },
    seeds: { type: 'string', value: 'N', about: 'means over so many seeds; 3, or 1 with --quick' },
    out: outOption(FOLDER),
    quick: { type: 'boolean', about: 'a look: fewer groups, sizes and runs, within a minute' },
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError('usage: webdfs bench placement');
    const quick = args.flag('quick');
    const path = args.text('topology');
    const file = path === undefined ? undefined : await clusterOf(path);
    const seed = args.count('seed', file?.seed ?? 1, { least: 0, most: MAX_SEED });
    const seeds = args.count('seeds', quick ? 1 : 3, { least: 1, most: MAX_SEEDS });
    return await runReport(args, terminal, {
      folder: FOLDER,
      run: async (onProgress) =>
        await benchPlacement({
          algorithms: listOf(args, 'algorithms', USUAL_CONTESTANTS),
          experiments: experimentsOf(args),
          ...(file === undefined ? {} : { topology: file.topology }),
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
