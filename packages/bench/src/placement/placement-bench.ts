import { type Clock, WebdfsError } from '@webdfs/base';
import type { Check } from '../report/check.ts';
import { environmentOf, type Report, type ReportSection } from '../report/report.ts';
import { type Contestant, CONTESTANTS, contestantsOf, type Task } from './contestant.ts';
import {
  type Cluster,
  type GroupBalance,
  groupSection,
  measureGroupBalance,
  measurePins,
  type PinnedBalance,
} from './group-balance.ts';
import { GROWING_PROSE, growingLayouts, type LookupTime, lookupSection, measureLookups } from './lookup-cost.ts';
import { balanceClaims } from './claims/balance-claims.ts';
import { FULL_CLAIMS, SHORT_CLAIMS } from './claims/claim.ts';
import { listClaims } from './claims/list-claims.ts';
import { lookupClaims } from './claims/lookup-claims.ts';
import { movementClaims, rackClaims } from './claims/movement-claims.ts';
import { subclustersOf } from './layout.ts';
import { compareRushP, compareRushR, compareServers } from './published-comparison.ts';
import { publishedSection } from './published-section.ts';
import { runContestant, type SetupResult, type SetupResults } from './setup-results.ts';
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
  readonly signal: AbortSignal;
  /** Told what is under way. */
  readonly onProgress: (what: string) => void;
}

/** Groups of each experiment: the founding one is that of 2009 always, a file's own at most `most`. */
const SIZES = {
  full: { founding: 10_000, racks: 32_768, most: 65_536, sets: 100, runs: 100, lookups: 1000 },
  quick: { founding: 10_000, racks: 4096, most: 4096, sets: 20, runs: 30, lookups: 500 },
} as const;
const LOOKUP_SIZES = { full: [1, 2, 5, 10, 25, 50, 75, 100], quick: [1, 10, 50, 100] } as const;
const GROUP_NODES = { full: [15, 50, 100, 300, 1000], quick: [15, 50, 100] } as const;
const GROUP_COUNTS = { full: [64, 256, 1024, 4096, 16_384, 65_536], quick: [64, 256, 1024, 4096, 16_384] } as const;
/** log2 of the numbers of groups whose pins are counted. */
const PINNED_BITS = [12, 14] as const;
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

  /** Between two pieces of work: all of it is computing, and whoever wants it to end must get a word in. */
  async #step(what: string): Promise<void> {
    const { clock, signal, onProgress } = this.#options;
    onProgress(what);
    await new Promise<void>((resolve) => clock.soon(resolve));
    signal.throwIfAborted();
  }

  async #setup(setup: Setup): Promise<SetupResults> {
    const { seed, seeds: count } = this.#options;
    const seeds = Array.from({ length: count }, (_, i) => (seed + i) >>> 0);
    const results: SetupResult[] = [];
    const refused: { name: string; reason: string }[] = [];
    for (const contestant of this.#contestants) {
      await this.#step(`${setup.title}: ${contestant.name}`);
      const result = runContestant(contestant, setup, seeds);
      if (typeof result === 'string') refused.push({ name: contestant.name, reason: result });
      else results.push(result);
    }
    return { setup, seeds, results, refused };
  }

  #setupSections(results: SetupResults): ReportSection[] {
    const { setup, refused } = results;
    if (results.results.length === 0) {
      const reasons = refused.map(({ name, reason }) => `${name}: ${reason}`);
      const what = `no placement can place ${setup.title}`;
      // a set-up that is built in was not asked for by name
      if (this.#own !== undefined) throw new WebdfsError('INVALID', `${what}: ${reasons.join('; ')}`);
      return [{ id: setup.id, title: setup.title, prose: [`${what}.`, ...reasons], charts: [], tables: [] }];
    }
    return [
      distributionSection(results),
      ...(setup.failing.length === 0 ? [] : [failureSection(results)]),
      reorganisationSection(results),
    ];
  }

  async #original(founding: SetupResults): Promise<ReportSection> {
    const { seed, algorithms } = this.#options;
    const { sets } = SIZES[this.#scale];
    await this.#step('The original: RUSH_R');
    const rushR = compareRushR();
    await this.#step('The original: RUSH_P');
    const rushP = compareRushP({ sets, seed });
    await this.#step('The original: 15 servers');
    const servers = compareServers({ names: algorithms, seed });
    return publishedSection({ rushR, rushP, sets, servers, founding });
  }

  async #builtIn(): Promise<ReportSection[]> {
    const { experiments } = this.#options;
    const sizes = SIZES[this.#scale];
    const sections: ReportSection[] = [];
    const wants = (experiment: Experiment): boolean => experiments.includes(experiment);
    if (wants('original') || wants('founding')) {
      const founding = await this.#setup(foundingSetup(sizes.founding));
      if (wants('original')) sections.push(await this.#original(founding));
      if (wants('founding')) sections.push(...this.#setupSections(founding));
    }
    if (wants('racks')) sections.push(...this.#setupSections(await this.#setup(rackSetup(sizes.racks))));
    return sections;
  }

  async #lookups(): Promise<{ section: ReportSection; times: LookupTime[] }> {
    const { seed, clock } = this.#options;
    const own = this.#own;
    const { runs, lookups } = SIZES[this.#scale];
    const layouts = own === undefined ? growingLayouts(LOOKUP_SIZES[this.#scale]) : [{ ...own, weights: own.name }];
    const times: LookupTime[] = [];
    for (const layout of layouts) {
      await this.#step(`Look-up cost: ${layout.subclusters.length} sub-clusters, ${layout.weights}`);
      times.push(...measureLookups(layout, { contestants: this.#contestants, runs, lookups, seed, clock }));
    }
    return { section: lookupSection(times, own === undefined ? GROWING_PROSE : `${own.name} as it is.`), times };
  }

  #clusters(): Cluster[] {
    if (this.#own !== undefined) return [this.#own];
    return GROUP_NODES[this.#scale].map((count) => ({
      name: `${count} nodes`,
      subclusters: subclustersOf([1], count),
      copies: 3,
    }));
  }

  async #groups(): Promise<ReportSection[]> {
    const { seed } = this.#options;
    const groups = GROUP_COUNTS[this.#scale];
    const found: GroupBalance[] = [];
    const pinned: PinnedBalance[] = [];
    for (const cluster of this.#clusters()) {
      for (const contestant of this.#contestants) {
        // the originals place names, not groups
        if (!contestant.seeded) continue;
        await this.#step(`Groups: ${contestant.name}, ${cluster.name}`);
        found.push(...measureGroupBalance(contestant, cluster, { groups, seed }));
      }
      for (const groupBits of PINNED_BITS) {
        await this.#step(`Pins: ${cluster.name}, ${2 ** groupBits} groups`);
        pinned.push(measurePins(cluster, groupBits, seed));
      }
    }
    return found.length === 0 ? [] : [groupSection(found, pinned)];
  }

  async #claims(): Promise<Check[]> {
    const sizes = CLAIMS[this.#scale];
    await this.#step('Claims: loads');
    const checks = balanceClaims(sizes);
    await this.#step('Claims: movement');
    checks.push(...movementClaims(sizes));
    await this.#step('Claims: racks');
    checks.push(...rackClaims(sizes));
    await this.#step('Claims: lists');
    checks.push(...listClaims());
    return checks;
  }

  async run(): Promise<{ sections: ReportSection[]; checks: Check[] }> {
    const { topology, experiments } = this.#options;
    const sections: ReportSection[] = [];
    const checks: Check[] = [];
    if (topology === undefined) sections.push(...(await this.#builtIn()));
    else {
      const groupCount = Math.min(topology.groupCount, SIZES[this.#scale].most);
      sections.push(...this.#setupSections(await this.#setup(setupOf({ ...topology, groupCount }))));
    }
    if (experiments.includes('lookup')) {
      const { section, times } = await this.#lookups();
      sections.push(section);
      if (topology === undefined) checks.push(...lookupClaims(times));
    }
    if (experiments.includes('groups')) sections.push(...(await this.#groups()));
    if (experiments.includes('claims') && topology === undefined) checks.unshift(...(await this.#claims()));
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
 * @throws the signal's reason if it is aborted on the way
 * @throws WebdfsError INVALID if a placement is unknown, or none can place the topology
 */
export async function benchPlacement(options: PlacementBenchOptions): Promise<Report> {
  const { command, seed, clock } = options;
  const environment = environmentOf({ command, seed, clock });
  const { sections, checks } = await new PlacementRun(options).run();
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
