import { type Clock, WebdfsError } from '@webdfs/base';
import { BENCH_EXIT } from '../report/check.ts';
import { environmentOf, type Report, type ReportSection } from '../report/report.ts';
import { type Contestant, CONTESTANTS, contestantsOf, type Task } from './contestant.ts';
import { groupSection, measureGroupBalance } from './group-balance.ts';
import { lookupSection, measureLookups } from './lookup-cost.ts';
import { publishedSection } from './published-section.ts';
import { runSetup, type SetupResults } from './setup-results.ts';
import { distributionSection, failureSection, reorganisationSection } from './setup-sections.ts';
import { foundingSetup, rackSetup, type Setup, setupOf } from './setups.ts';

/** `webdfs bench placement`: the published experiments on placement, for any placement, any cluster and any seed. */

export const EXPERIMENTS = ['original', 'founding', 'racks', 'lookup', 'groups'] as const;
export type Experiment = (typeof EXPERIMENTS)[number];

/** What is compared unless told otherwise. */
export const USUAL_CONTESTANTS: readonly string[] = CONTESTANTS.filter((name) => !name.startsWith('rendezvous-'));

export interface PlacementBenchOptions {
  /** Names out of `CONTESTANTS`. */
  readonly algorithms: readonly string[];
  readonly experiments: readonly Experiment[];
  /** A cluster to put through the experiments instead of the two that are built in. */
  readonly topology?: Omit<Task, 'groupCount' | 'seed'> & { readonly name: string };
  readonly seed: number;
  /** How many seeds, from `seed` on, the means are over. */
  readonly seeds: number;
  /** Fewer groups, sizes and runs: for a look. */
  readonly quick: boolean;
  readonly clock: Clock;
  /** The words that repeat the run, for the report. */
  readonly command: string;
  /** Told what is under way. */
  readonly onProgress: (what: string) => void;
}

/** Groups of each experiment; the founding one is that of 2009 always. */
const SIZES = {
  full: { founding: 10_000, racks: 32_768, topology: 16_384, sets: 100, runs: 9, lookups: 4000 },
  quick: { founding: 10_000, racks: 4096, topology: 4096, sets: 20, runs: 3, lookups: 500 },
} as const;
const LOOKUP_SIZES = { full: [1, 2, 5, 10, 25, 50, 75, 100], quick: [1, 10, 50, 100] } as const;
const GROUP_NODES = { full: [15, 50, 100, 300, 1000], quick: [15, 50, 100] } as const;
const GROUP_COUNTS = { full: [64, 256, 1024, 4096, 16_384, 65_536], quick: [64, 256, 1024, 4096, 16_384] } as const;

/** Those whose balance by groups is theirs alone: the original has names, and the baselines ignore groups or weights. */
function withGroups(contestants: readonly Contestant[]): Contestant[] {
  return contestants.filter((contestant) => contestant.seeded);
}

class PlacementRun {
  readonly #options: PlacementBenchOptions;
  readonly #contestants: readonly Contestant[];
  readonly #scale: 'full' | 'quick';

  constructor(options: PlacementBenchOptions) {
    this.#options = options;
    this.#contestants = contestantsOf(options.algorithms);
    this.#scale = options.quick ? 'quick' : 'full';
  }

  #setup(setup: Setup): SetupResults {
    const { seed, seeds, onProgress } = this.#options;
    const all = Array.from({ length: seeds }, (_, i) => (seed + i) >>> 0);
    return runSetup(setup, this.#contestants, all, onProgress);
  }

  #setupSections(results: SetupResults): ReportSection[] {
    if (results.results.length === 0) {
      const reasons = results.refused.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
      throw new WebdfsError('INVALID', `no placement can place ${results.setup.title}: ${reasons}`);
    }
    return [
      distributionSection(results),
      ...(results.setup.failing.length === 0 ? [] : [failureSection(results)]),
      reorganisationSection(results),
    ];
  }

  #builtIn(): ReportSection[] {
    const { experiments, algorithms, seed, onProgress } = this.#options;
    const sizes = SIZES[this.#scale];
    const sections: ReportSection[] = [];
    const wants = (experiment: Experiment): boolean => experiments.includes(experiment);
    if (wants('original') || wants('founding')) {
      const founding = this.#setup(foundingSetup(sizes.founding));
      if (wants('original')) {
        sections.push(publishedSection({ sets: sizes.sets, seed, names: algorithms, founding, onProgress }));
      }
      if (wants('founding')) sections.push(...this.#setupSections(founding));
    }
    if (wants('racks')) sections.push(...this.#setupSections(this.#setup(rackSetup(sizes.racks))));
    return sections;
  }

  sections(): ReportSection[] {
    const { topology, experiments, seed, clock, onProgress } = this.#options;
    const sizes = SIZES[this.#scale];
    const sections =
      topology === undefined
        ? this.#builtIn()
        : this.#setupSections(this.#setup(setupOf({ ...topology, groupCount: sizes.topology })));
    if (experiments.includes('lookup')) {
      const { runs, lookups } = sizes;
      const contestants = this.#contestants;
      const times = measureLookups({
        contestants,
        sizes: LOOKUP_SIZES[this.#scale],
        runs,
        lookups,
        seed,
        clock,
        onProgress,
      });
      sections.push(lookupSection(times));
    }
    const grouped = withGroups(this.#contestants);
    if (experiments.includes('groups') && grouped.length > 0) {
      const nodes = GROUP_NODES[this.#scale];
      const groups = GROUP_COUNTS[this.#scale];
      sections.push(groupSection(measureGroupBalance({ contestants: grouped, nodes, groups, seed, onProgress })));
    }
    return sections;
  }
}

/**
 * Runs the experiments.
 *
 * @throws WebdfsError INVALID if a placement is unknown, or none can place the topology
 */
export function benchPlacement(options: PlacementBenchOptions): Report {
  const { command, seed, clock } = options;
  const environment = environmentOf({ command, seed, clock });
  const sections = new PlacementRun(options).sections();
  return {
    format: 'webdfs-report',
    version: 1,
    title: 'Placement: the experiments of RUSH, rerun',
    summary: [],
    environment,
    sections,
    checks: [],
  };
}

/** @returns the exit code of a report: checks that fail count */
export function exitCodeOfReport(report: Report): number {
  return report.checks.every((check) => check.pass) ? BENCH_EXIT.PASS : BENCH_EXIT.FAIL;
}
