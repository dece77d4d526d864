import { type Clock, WebdfsError } from '@webdfs/base';
import type { Check } from '../report/check.ts';
import { environmentOf, type Report, type ReportSection } from '../report/report.ts';
import { type Contestant, CONTESTANTS, contestantsOf, type Task } from './contestant.ts';
import { type Cluster, groupSection, measureGroupBalance, measurePins } from './group-balance.ts';
import { GROWING_PROSE, growingLayouts, type LookupTime, lookupSection, measureLookups } from './lookup-cost.ts';
import { balanceClaims } from './claims/balance-claims.ts';
import { FULL_CLAIMS, SHORT_CLAIMS } from './claims/claim.ts';
import { listClaims } from './claims/list-claims.ts';
import { lookupClaims } from './claims/lookup-claims.ts';
import { movementClaims, rackClaims } from './claims/movement-claims.ts';
import { subclustersOf } from './layout.ts';
import { publishedSection } from './published-section.ts';
import { runSetup, type SetupResults } from './setup-results.ts';
import { distributionSection, failureSection, reorganisationSection } from './setup-sections.ts';
import { foundingSetup, rackSetup, type Setup, setupOf } from './setups.ts';

/** `webdfs bench placement`: the published experiments on placement, for any placement, any cluster and any seed. */

export const EXPERIMENTS = ['original', 'founding', 'racks', 'lookup', 'groups', 'claims'] as const;
export type Experiment = (typeof EXPERIMENTS)[number];

/** What is compared unless told otherwise. */
export const USUAL_CONTESTANTS: readonly string[] = CONTESTANTS.filter((name) => !name.startsWith('rendezvous-'));

export interface PlacementBenchOptions {
  /** Names out of `CONTESTANTS`. */
  readonly algorithms: readonly string[];
  readonly experiments: readonly Experiment[];
  /** A cluster to put through the experiments instead of the two that are built in. */
  readonly topology?: Omit<Task, 'seed'> & { readonly name: string };
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

/** Groups of each experiment: the founding one is that of 2009 always, a file's own at most `most`. */
const SIZES = {
  full: { founding: 10_000, racks: 32_768, most: 65_536, sets: 100, runs: 9, lookups: 4000 },
  quick: { founding: 10_000, racks: 4096, most: 4096, sets: 20, runs: 3, lookups: 500 },
} as const;
const LOOKUP_SIZES = { full: [1, 2, 5, 10, 25, 50, 75, 100], quick: [1, 10, 50, 100] } as const;
const GROUP_NODES = { full: [15, 50, 100, 300, 1000], quick: [15, 50, 100] } as const;
const GROUP_COUNTS = { full: [64, 256, 1024, 4096, 16_384, 65_536], quick: [64, 256, 1024, 4096, 16_384] } as const;
const CLAIMS = { full: FULL_CLAIMS, quick: SHORT_CLAIMS } as const;

class PlacementRun {
  readonly #options: PlacementBenchOptions;
  readonly #contestants: readonly Contestant[];
  readonly #scale: 'full' | 'quick';
  /** The cluster that was handed in, without how many groups it is to have. */
  readonly #own: Cluster | undefined;

  constructor(options: PlacementBenchOptions) {
    this.#options = options;
    this.#contestants = contestantsOf(options.algorithms);
    this.#scale = options.quick ? 'quick' : 'full';
    if (options.topology !== undefined) {
      const { groupCount: _, ...own } = options.topology;
      this.#own = own;
    }
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

  #lookups(): { section: ReportSection; times: LookupTime[] } {
    const { seed, clock, onProgress } = this.#options;
    const own = this.#own;
    const { runs, lookups } = SIZES[this.#scale];
    const layouts = own === undefined ? growingLayouts(LOOKUP_SIZES[this.#scale]) : [{ ...own, weights: own.name }];
    const contestants = this.#contestants;
    const times = measureLookups({ contestants, layouts, runs, lookups, seed, clock, onProgress });
    const prose = own === undefined ? GROWING_PROSE : `${own.name} as it is.`;
    return { section: lookupSection(times, prose), times };
  }

  #groups(): ReportSection[] {
    const { seed, onProgress } = this.#options;
    const clusters: Cluster[] =
      this.#own === undefined
        ? GROUP_NODES[this.#scale].map((count) => ({
            name: `${count} nodes`,
            subclusters: subclustersOf([1], count),
            copies: 3,
          }))
        : [this.#own];
    const groups = GROUP_COUNTS[this.#scale];
    // the originals place names, not groups
    const contestants = this.#contestants.filter((contestant) => contestant.seeded);
    const found = measureGroupBalance({ contestants, clusters, groups, seed, onProgress });
    if (found.length === 0) return [];
    const pinned = clusters.flatMap((cluster) =>
      groups
        .filter((count) => count === 4096 || count === 16_384)
        .map((count) => measurePins(cluster, Math.log2(count), seed)),
    );
    return [groupSection(found, pinned)];
  }

  run(): { sections: ReportSection[]; checks: Check[] } {
    const { topology, experiments, onProgress } = this.#options;
    const sections: ReportSection[] = [];
    const checks: Check[] = [];
    if (topology === undefined) sections.push(...this.#builtIn());
    else {
      const groupCount = Math.min(topology.groupCount, SIZES[this.#scale].most);
      sections.push(...this.#setupSections(this.#setup(setupOf({ ...topology, groupCount }))));
    }
    if (experiments.includes('lookup')) {
      const { section, times } = this.#lookups();
      sections.push(section);
      if (topology === undefined) checks.push(...lookupClaims(times));
    }
    if (experiments.includes('groups')) sections.push(...this.#groups());
    if (experiments.includes('claims') && topology === undefined) {
      onProgress('Claims');
      const sizes = CLAIMS[this.#scale];
      checks.unshift(...balanceClaims(sizes), ...movementClaims(sizes), ...rackClaims(sizes), ...listClaims());
    }
    return { sections, checks };
  }
}

/** One sentence on what became of the published figures. */
function verdictSummary(sections: readonly ReportSection[]): string[] {
  const counts = { reproduced: 0, within: 0, differs: 0 };
  for (const table of sections.flatMap((section) => section.tables)) {
    const column = table.columns.findIndex(({ kind }) => kind === 'verdict');
    for (const row of column < 0 ? [] : table.rows) {
      const word = String(row[column] ?? '').split(/[ ,]/, 1)[0];
      if (word === 'reproduced' || word === 'within' || word === 'differs') counts[word]++;
    }
  }
  const sum = counts.reproduced + counts.within + counts.differs;
  if (sum === 0) return [];
  return [
    `Of ${sum} comparisons with what WebDFS published in 2009, ${counts.reproduced} come out to the digit, ${counts.within} lie within noise, ` +
      `and ${counts.differs} differ for the reason that stands beside them.`,
  ];
}

/**
 * Runs the experiments.
 *
 * @throws WebdfsError INVALID if a placement is unknown, or none can place the topology
 */
export function benchPlacement(options: PlacementBenchOptions): Report {
  const { command, seed, clock } = options;
  const environment = environmentOf({ command, seed, clock });
  const { sections, checks } = new PlacementRun(options).run();
  return {
    format: 'webdfs-report',
    version: 1,
    title: 'Placement: the experiments of RUSH, rerun',
    summary: verdictSummary(sections),
    environment,
    sections,
    checks,
  };
}
