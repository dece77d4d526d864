import { type Arguments, type Option, UsageError } from '../../command.ts';
import { outOption } from './report-run.ts';

/** What benchmarks take that are made of experiments and of chance. */

const MAX_SEED = 0xffff_ffff;

export interface ExperimentSetup {
  /** Where the report goes unless `--out` says otherwise. */
  readonly folder: string;
  readonly seeds: string;
  readonly quick: string;
}

export function experimentOptions({ folder, seeds, quick }: ExperimentSetup): Record<string, Option> {
  return {
    experiments: { type: 'string', value: 'NAME,…', about: 'run these, see above' },
    seed: { type: 'string', value: 'N', about: 'the same number gives the same figures; 1 if left out' },
    seeds: { type: 'string', value: 'N', about: seeds },
    out: outOption(folder),
    quick: { type: 'boolean', about: quick },
  };
}

/** A list of words between commas. */
export function listOf(args: Arguments, option: string, fallback: readonly string[]): string[] {
  const text = args.text(option);
  return text === undefined ? [...fallback] : text.split(',').map((name) => name.trim());
}

/** @throws UsageError naming those there are */
export function experimentsOf<Name extends string>(
  args: Arguments,
  known: readonly Name[],
  usual: readonly Name[],
): Name[] {
  return listOf(args, 'experiments', usual).map((word) => {
    const found = known.find((name) => name === word);
    if (found === undefined) throw new UsageError(`there is no experiment ${word}, only ${known.join(', ')}`);
    return found;
  });
}

export interface Chance {
  readonly seed: number;
  readonly seeds: number;
  readonly quick: boolean;
}

/** @throws UsageError */
export function chanceOf(args: Arguments, { seed = 1, mostSeeds }: { seed?: number; mostSeeds: number }): Chance {
  const quick = args.flag('quick');
  return {
    quick,
    seed: args.count('seed', seed, { least: 0, most: MAX_SEED }),
    seeds: args.count('seeds', quick ? 1 : 3, { least: 1, most: mostSeeds }),
  };
}

/** The words that give the same figures again. */
export function commandOf(name: string, args: Arguments, options: readonly string[], chance: Chance): string {
  const given = options.flatMap((option) => {
    const value = args.text(option);
    return value === undefined ? [] : [`--${option} ${value}`];
  });
  const quick = chance.quick ? ['--quick'] : [];
  return [`webdfs ${name}`, ...given, `--seed ${chance.seed}`, `--seeds ${chance.seeds}`, ...quick].join(' ');
}
