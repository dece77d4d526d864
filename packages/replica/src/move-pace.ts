import { type Clock, sleep, type Timer, TokenBucket } from '@webdfs/base';
import type { LocalMap } from '@webdfs/cluster';
import { backOffStep, type MovingPace, UNHURRIED } from '@webdfs/rescale';
import type { MoveMeter } from './move-meter.ts';
import { WaitSamples } from './wait-samples.ts';

/** Between looks at what was moved and how long clients waited. */
const LOOK_MS = 1_000;
/** A piece is asked for at once: an eighth of a second's, within bounds, in whole chunks that are verified once. */
const PIECES_PER_SECOND = 8;
const LEAST_PIECE = 65_536;
const MOST_PIECE = 1_048_576;

/** What a message costs beside its bytes, in bytes: groups of few objects take a node's time, not its network's. */
const MESSAGE_WORK = 8_192;

/**
 * `urgent`: the group has too few copies to be written, and nothing that mends it waits. `repair`: it lacks a copy, which waits as the map's
 * limits say, and for no client: another failure may come first. `move`: it has all its copies, and only moves.
 */
export type Hurry = 'urgent' | 'repair' | 'move';

/** One direction of what moves through a node: what learning takes in, or what is sent to learners. */
export class MoveLane {
  readonly #clock: Clock;
  /** Bytes, by the limits of the map. */
  readonly #limited: TokenBucket;
  /** Work, by what clients leave to it. */
  readonly #yielding: TokenBucket;
  #bytes = 0;
  #work = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#limited = new TokenBucket(Infinity, clock);
    this.#yielding = new TokenBucket(Infinity, clock);
  }

  /** All that passed, bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The same with what messages cost. */
  get work(): number {
    return this.#work;
  }

  /** Bytes per second that pass now, at most; `Infinity`: all. */
  get rate(): number {
    return Math.min(this.#limited.rate, this.#yielding.rate);
  }

  /** Bytes to be asked for at once. */
  get pieceBytes(): number {
    const chunks = Math.floor(this.rate / PIECES_PER_SECOND / LEAST_PIECE);
    return Math.max(LEAST_PIECE, Math.min(MOST_PIECE, chunks * LEAST_PIECE));
  }

  /** Waits until a message of so many bytes may pass; what does not wait counts as well. @throws the signal's reason */
  async pass(bytes: number, hurry: Hurry, signal?: AbortSignal): Promise<void> {
    const work = bytes + MESSAGE_WORK;
    this.#bytes += bytes;
    this.#work += work;
    const limitedMs = this.#limited.reserve(bytes);
    const yieldingMs = hurry === 'move' ? this.#yielding.reserve(work) : 0;
    const waitMs = Math.max(limitedMs, yieldingMs);
    if (waitMs > 0 && hurry !== 'urgent') await sleep(this.#clock, waitMs, signal);
  }

  /** Bytes per second by the map, and of work as far as clients are concerned. */
  limit(rate: number, work: number): void {
    this.#limited.setRate(Math.max(LEAST_PIECE, rate));
    this.#yielding.setRate(work);
  }
}

/** What it looks at. */
export interface PaceSeams {
  readonly clock: Clock;
  readonly map: Pick<LocalMap, 'view'>;
  readonly moves: Pick<MoveMeter, 'status'>;
}

/**
 * How fast groups move to and from this node: within the limits that the map names, and slower where its clients wait longer than they do
 * when it is calm (`backOffStep`). docs/internals/rescaling.md tells the rules.
 */
export class MovePace {
  readonly intake: MoveLane;
  readonly outgo: MoveLane;
  readonly #clock: Clock;
  readonly #map: Pick<LocalMap, 'view'>;
  readonly #moves: Pick<MoveMeter, 'status'>;
  readonly #waits = new WaitSamples();
  #pace: MovingPace = UNHURRIED;
  #lookedAt: number;
  #seen = { in: 0, out: 0 };
  #timer: Timer | undefined;

  constructor({ clock, map, moves }: PaceSeams) {
    this.#clock = clock;
    this.#map = map;
    this.#moves = moves;
    this.intake = new MoveLane(clock);
    this.outgo = new MoveLane(clock);
    this.#lookedAt = clock.monotonic();
  }

  start(): void {
    this.#lookedAt = this.#clock.monotonic();
    this.#limit(false);
    this.#again();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** A client of this node got its answer after so long. */
  answered(kind: string, waitedMs: number): void {
    this.#waits.add(kind, waitedMs);
  }

  /** `moveRate`: bytes per second that clients leave to it now; 0: as many as it can. */
  counters(): Readonly<Record<'movedInBytes' | 'movedOutBytes' | 'moveRate' | 'moveSlowdowns', number>> {
    const { rate } = this.intake;
    return {
      movedInBytes: this.intake.bytes,
      movedOutBytes: this.outgo.bytes,
      moveRate: rate === Infinity ? 0 : Math.round(rate),
      moveSlowdowns: this.#pace.slowdowns,
    };
  }

  #again(): void {
    this.#timer = this.#clock.after(LOOK_MS, () => {
      this.#look();
      this.#again();
    });
  }

  #look(): void {
    const now = this.#clock.monotonic();
    const { intake, outgo } = this;
    const bytes = Math.max(intake.work - this.#seen.in, outgo.work - this.#seen.out);
    const seconds = (now - this.#lookedAt) / 1_000;
    this.#seen = { in: intake.work, out: outgo.work };
    this.#lookedAt = now;
    const { hasClients, waits } = this.#waits.take();
    this.#pace = backOffStep(this.#pace, { at: now / 1_000, seconds, bytes, waits });
    this.#limit(hasClients);
  }

  #limit(hasClients: boolean): void {
    const { bytesPerSecond = Infinity, share = 1 } = this.#map.view.map.moveLimits ?? {};
    const part = hasClients ? share : 1;
    const { fastestReceive, fastestSend } = this.#moves.status();
    this.intake.limit(Math.min(bytesPerSecond, partOf(part, fastestReceive)), this.#pace.limit);
    this.outgo.limit(Math.min(bytesPerSecond, partOf(part, fastestSend)), this.#pace.limit);
  }
}

/** A part of what a node was seen to do; until it was, it moves freely for the seconds that it takes to see it. */
function partOf(part: number, fastest: number): number {
  return part < 1 && fastest > 0 ? part * fastest : Infinity;
}
