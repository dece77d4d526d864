import { assert, type NodeId, SeededRandom } from '@webdfs/base';
import { type RatesOf, timeLeft, type Transfer, usageOf } from '@webdfs/rescale';
import { Execution, type NodeFigures } from '../execution.ts';
import { LOAD_VALIDATOR } from '../load-validator.ts';
import type {
  DataDistributionGenerator,
  DataTransferScheduler,
  DistributionFindings,
  IODispatcher,
  Membership,
  MetadataGenerator,
  PlacedFile,
} from '../parts.ts';
import { EventQueue } from './event-queue.ts';
import { SimulatedNetwork } from './network.ts';
import { type Interleaving, SimulatedStorage } from './storage.ts';

/** What is put together for a run in simulated time. */
export interface RunParts {
  readonly metadata: MetadataGenerator;
  readonly distribution: DataDistributionGenerator;
  readonly scheduler: DataTransferScheduler;
  readonly dispatcher: IODispatcher;
}

export interface SimulatedSetup {
  readonly membership: Membership;
  /** What each node holds at the start on average, copies counted. */
  readonly bytesPerNode: number;
  readonly ratesOf: RatesOf;
  /** Seconds that a message takes besides its bytes. */
  readonly latency: number;
  readonly interleaving?: Interleaving;
  /** How full the fullest node may be, before and after, of the mean; placements that hash have theirs. */
  readonly fullest: number;
  readonly seed: number;
}

export interface RunFigures {
  /** Until the last byte was durable. */
  readonly seconds: number;
  /** What the transfers take at least. */
  readonly planSeconds: number;
  readonly movedBytes: number;
  readonly nodes: ReadonlyMap<NodeId, NodeFigures>;
  readonly before: DistributionFindings;
  readonly after: DistributionFindings;
  /** The time that was left when a fifth of the bytes had arrived, as foretold by what had seen no more, by what it was. */
  readonly foretold: number;
}

/** When the time left is foretold, as a share of all bytes. */
const FORETOLD_AT = 0.2;

/** Who holds what while copies are made; a copy goes only when all that replace copies of its file are durable. */
class Holdings {
  readonly #files: readonly PlacedFile[];
  readonly #held: Set<NodeId>[];
  readonly #missing: number[];

  constructor(files: readonly PlacedFile[]) {
    this.#files = files;
    this.#held = files.map(({ before }) => new Set(before));
    this.#missing = files.map(({ before, after }) => after.filter((node) => !before.includes(node)).length);
  }

  of(file: number): ReadonlySet<NodeId> {
    return this.#held[file]!;
  }

  arrived(file: number, node: NodeId): void {
    const held = this.#held[file]!;
    assert(!held.has(node), 'no copy is made twice');
    held.add(node);
    this.#missing[file]! -= 1;
    if (this.#missing[file]! > 0) return;
    const { after } = this.#files[file]!;
    for (const holder of held) if (!after.includes(holder)) held.delete(holder);
  }

  /** Files of which nothing arrives give up copies, too. */
  settle(): void {
    for (const [file, { after }] of this.#files.entries()) {
      if (this.#missing[file] !== 0) continue;
      for (const holder of this.#held[file]!) if (!after.includes(holder)) this.#held[file]!.delete(holder);
    }
  }
}

/** Counts what arrives, and once, when a fifth has, foretells how long the rest takes. */
class Arrivals {
  readonly #ratesOf: RatesOf;
  readonly #left: Set<Transfer>;
  readonly #threshold: number;
  #leftBytes: number;
  #guess: { readonly at: number; readonly seconds: number } | undefined;

  constructor(transfers: readonly Transfer[], ratesOf: RatesOf) {
    this.#ratesOf = ratesOf;
    this.#left = new Set(transfers);
    this.#leftBytes = transfers.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#threshold = this.#leftBytes * (1 - FORETOLD_AT);
  }

  add(transfer: Transfer, now: number): void {
    assert(this.#left.delete(transfer), 'what arrives was planned, and arrives once');
    this.#leftBytes -= transfer.bytes;
    if (this.#guess !== undefined || this.#leftBytes > this.#threshold) return;
    const nodes = Array.from(
      usageOf(this.#left),
      ([node, left]) => [node, { left, rates: this.#ratesOf(node) }] as const,
    );
    this.#guess = { at: now, seconds: timeLeft(new Map(nodes))?.seconds ?? 0 };
  }

  /** What was foretold by what it turned out to be. @param end  when all had arrived */
  foretold(end: number): number {
    if (this.#guess === undefined || end === this.#guess.at) return 1;
    return this.#guess.seconds / (end - this.#guess.at);
  }
}

/** The four steps of a run in simulated time. */
export function simulateRun(parts: RunParts, setup: SimulatedSetup): RunFigures {
  const { membership, ratesOf, seed, fullest } = setup;
  const { before, after, copies } = membership;
  const random = new SeededRandom(seed);
  const nodes = [...new Set([...before, ...after])];

  const sizes = parts.metadata.sizes((setup.bytesPerNode * before.length) / copies);
  const files = parts.distribution.distribute(sizes, membership, random);
  const holdings = new Holdings(files);
  const findings = (at: readonly NodeId[]): DistributionFindings =>
    LOAD_VALIDATOR.validate(sizes, (file) => holdings.of(file), { nodes: at, copies, fullest });
  const start = findings(before);
  const { transfers, seconds: planSeconds } = parts.scheduler.schedule({ files, membership, ratesOf, random });

  const queue = new EventQueue();
  const storage = new SimulatedStorage(queue, ratesOf, setup.interleaving);
  for (const [file, placed] of files.entries()) for (const node of placed.before) storage.generate(node, file);

  const arrivals = new Arrivals(transfers, ratesOf);
  const execution = new Execution(parts.dispatcher.open(transfers, nodes), nodes, {
    storage,
    network: new SimulatedNetwork(queue, ratesOf, setup.latency),
    now: () => queue.now,
    wait: (seconds, over) => queue.at(queue.now + seconds, over),
    onWritten: (transfer) => {
      holdings.arrived(transfer.parcel, transfer.to);
      arrivals.add(transfer, queue.now);
    },
  });
  execution.start();
  queue.run();
  holdings.settle();

  const figures = [...execution.figures.values()];
  const seconds = Math.max(...figures.map(({ finishedAt }) => finishedAt));
  return {
    seconds,
    planSeconds,
    movedBytes: figures.reduce((sum, { written }) => sum + written, 0),
    nodes: execution.figures,
    before: start,
    after: findings(after),
    foretold: arrivals.foretold(seconds),
  };
}
