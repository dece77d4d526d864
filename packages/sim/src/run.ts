import { type LogLevel, messageOf, SeededRandom } from '@webdfs/base';
import type { DiskFate, DiskOperation } from '@webdfs/base/testing';
import type { Groups } from '@webdfs/client';
import { checkHistory, drawOperations, HistoryRecorder } from '@webdfs/history';
import { checkFinally, makeBucket, readFinally } from './final-checks.ts';
import { Invariants } from './invariants.ts';
import { SCALE } from './scale.ts';
import { type Mix, SimulatedClient, Violation } from './simulated-client.ts';
import { SimulatedCluster } from './simulated-cluster.ts';
import { ValueBook } from './value-book.ts';
import { type Fault, someFaults, Weather } from './weather.ts';

export interface RunOptions {
  readonly seed: number;
  /** How long the weather is bad; 12 000. */
  readonly badMs?: number;
  /** Only these may happen; else the seed chooses some. */
  readonly faults?: readonly Fault[];
  /** These as well. */
  readonly moreFaults?: readonly Fault[];
  /** Every line as it comes, with its time. */
  readonly tell?: (line: string) => void;
  readonly logLevel?: LogLevel;
  /** Ways to break the cluster, for tests of the simulator. */
  readonly wrapGroups?: (groups: Groups, random: SeededRandom) => Groups;
  readonly fate?: (operation: DiskOperation, random: SeededRandom) => DiskFate;
  readonly sabotage?: (cluster: SimulatedCluster, random: SeededRandom) => void;
}

export interface RunReport {
  readonly seed: number;
  /** Of everything that happened; the same seed gives the same. */
  readonly digest: string;
  readonly happened: number;
  readonly simulatedMs: number;
  readonly operations: number;
  readonly unknown: number;
  readonly faults: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly failure: { readonly message: string; readonly transcript: readonly string[] } | undefined;
}

/** Lines of a transcript that are kept. */
const MAX_LINES = 4_000;

/** The newest lines of what happened. */
class Transcript {
  readonly #lines: string[] = [];
  readonly #also: ((line: string) => void) | undefined;
  now: () => number = () => 0;

  constructor(also: ((line: string) => void) | undefined) {
    this.#also = also;
  }

  tell(line: string): void {
    const timed = `${(this.now() / 1_000).toFixed(4).padStart(9)}  ${line}`;
    this.#also?.(timed);
    this.#lines.push(timed);
    if (this.#lines.length > 2 * MAX_LINES) this.#lines.splice(0, this.#lines.length - MAX_LINES);
  }

  get lines(): readonly string[] {
    return this.#lines.slice(-MAX_LINES);
  }
}

/** What one run is like: a seed chooses the number of nodes and clients, what they do, and which faults there are. */
interface Plan {
  readonly nodes: number;
  /** Machines that may be added. */
  readonly spares: number;
  readonly clients: number;
  readonly mix: Mix;
  readonly faults: readonly Fault[];
  readonly everyMs: number;
}

const SPARES = 3;

function planOf(random: SeededRandom, faults: readonly Fault[]): Plan {
  const share = (): number => (random.below(4) === 0 ? 0 : random.fraction());
  return {
    nodes: random.below(4) === 0 ? 4 + random.below(2) : 3,
    spares: faults.includes('rescale') ? SPARES : 0,
    clients: 2 + random.below(4),
    mix: {
      read: 1,
      list: share() / 3,
      put: 0.2 + share(),
      create: share(),
      swap: share(),
      remove: share() / 2,
      upload: share() / 3,
      large: random.fraction() * 0.6,
      thinkMs: 20 + random.below(300),
    },
    faults,
    everyMs: random.below(2) === 0 ? 100 + random.below(600) : 400 + random.below(2_000),
  };
}

/** One cluster, one spell of bad weather, one verdict. Never throws for what the cluster does: that is in the report. */
export async function runSeed(options: RunOptions): Promise<RunReport> {
  const random = new SeededRandom(options.seed);
  const { faults = someFaults(options.seed), moreFaults = [] } = options;
  const plan = planOf(new SeededRandom(random.uint32()), [...new Set([...faults, ...moreFaults])]);
  const transcript = new Transcript(options.tell);
  const breaking = new SeededRandom(random.uint32());
  const { wrapGroups, fate, badMs = 12_000 } = options;
  transcript.tell(`seed ${options.seed}: ${plan.nodes} nodes, ${plan.clients} clients, ${plan.faults.join(', ')}`);
  await using cluster = await SimulatedCluster.start({
    seed: random.uint32(),
    nodes: plan.nodes,
    spares: plan.spares,
    scale: { ...SCALE, logLevel: options.logLevel },
    tell: (line) => transcript.tell(line),
    ...(wrapGroups && { wrapGroups: (groups: Groups) => wrapGroups(groups, breaking) }),
    ...(fate && { fate: (operation: DiskOperation) => fate(operation, breaking) }),
  });
  transcript.now = () => cluster.time.now;
  const run = new Run(cluster, plan, new SeededRandom(random.uint32()));
  let failure: RunReport['failure'];
  // a node's process would end by it, without a word to anybody
  const unhandled = (error: unknown): void => cluster.broken(error);
  process.on('unhandledRejection', unhandled);
  try {
    options.sabotage?.(cluster, breaking);
    await run.badDays(badMs);
    await run.goodDays();
  } catch (error) {
    // what is not a finding is a broken invariant of the code, or a bug of the simulator: told with its stack
    const message = error instanceof Violation ? error.message : `${messageOf(error)}\n${(error as Error).stack ?? ''}`;
    failure = { message, transcript: transcript.lines };
  } finally {
    process.off('unhandledRejection', unhandled);
  }
  const { time } = cluster;
  return {
    seed: options.seed,
    digest: time.digest,
    happened: time.happened,
    simulatedMs: time.now,
    ...run.facts(),
    failure,
  };
}

class Run {
  readonly #cluster: SimulatedCluster;
  readonly #history: HistoryRecorder;
  readonly #invariants: Invariants;
  readonly #weather: Weather;
  readonly #clients: SimulatedClient[];
  readonly #last: SimulatedClient;
  #instant = 0;

  constructor(cluster: SimulatedCluster, plan: Plan, random: SeededRandom) {
    this.#cluster = cluster;
    this.#history = new HistoryRecorder(() => ++this.#instant);
    const { faults, everyMs } = plan;
    // nothing but the operator takes a member away
    this.#invariants = new Invariants(cluster, { isCalm: faults.every((fault) => fault === 'rescale') });
    const invariants = this.#invariants;
    this.#weather = new Weather({ cluster, invariants, random: new SeededRandom(random.uint32()), faults, everyMs });
    const book = new ValueBook();
    const all = Array.from({ length: plan.clients + 1 }, (_, id) => {
      const own = new SeededRandom(random.uint32());
      return new SimulatedClient({ id, cluster, history: this.#history, book, random: own, mix: plan.mix });
    });
    this.#last = all[0]!;
    this.#clients = all.slice(1);
  }

  async badDays(ms: number): Promise<void> {
    await makeBucket(this.#cluster);
    this.#cluster.watch = () => {
      this.#invariants.look();
      this.#weather.revive();
    };
    const work = this.#clients.map((client) => client.work().catch((error: unknown) => this.#cluster.broken(error)));
    this.#weather.begin();
    await this.#cluster.pass(ms);
    for (const client of this.#clients) client.stop();
    this.#cluster.tell('the weather clears up');
    await this.#cluster.during(this.#weather.clear());
    await this.#cluster.during(Promise.all(work));
  }

  async goodDays(): Promise<void> {
    const { blockBytes } = SCALE.sizes;
    const seams = { cluster: this.#cluster, invariants: this.#invariants, client: this.#last, blockBytes };
    await readFinally(seams);
    this.#checkHistory();
    await checkFinally(seams);
  }

  #checkHistory(): void {
    const { offence, undecided } = checkHistory(this.#history.operations());
    if (offence !== undefined) {
      const drawing = drawOperations(offence.operations).join('\n');
      throw new Violation(`the history of ${offence.key} is not linearizable:\n${drawing}`);
    }
    if (undecided.length > 0) throw new Violation(`the history of ${undecided.join()} could not be decided`);
  }

  facts(): Pick<RunReport, 'operations' | 'unknown' | 'faults' | 'counts'> {
    const operations = this.#history.operations();
    const counts: Record<string, number> = {};
    for (const client of this.#clients) {
      for (const [name, count] of Object.entries(client.counts)) counts[name] = (counts[name] ?? 0) + count;
    }
    const faults = Object.values(this.#weather.counts);
    return {
      operations: operations.length,
      unknown: operations.filter(({ result }) => result.type === 'unknown').length,
      faults: faults.reduce((sum, count) => sum + count, 0),
      counts,
    };
  }
}
