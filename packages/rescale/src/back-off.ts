/** What a node saw in one stretch of time. */
export interface MovingSample {
  /** Seconds of a clock that never goes back, at the end of the stretch, and how long it took. */
  readonly at: number;
  readonly seconds: number;
  /** Bytes that moved, in or out, whichever were more. */
  readonly bytes: number;
  /** How long its clients waited, milliseconds, 95th percentile; by kind of request, those that were too few to say left out. */
  readonly waits: ReadonlyMap<string, number>;
}

/** The least that clients waited in a minute. */
interface CalmMinute {
  readonly minute: number;
  readonly waitMs: number;
}

/** How fast a node may move, as far as its clients are concerned. */
export interface MovingPace {
  /** Bytes per second; `Infinity`: as fast as it goes. */
  readonly limit: number;
  /** The fastest it was seen to move. */
  readonly fastest: number;
  /** How often it was slowed down. */
  readonly slowdowns: number;
  readonly calm: ReadonlyMap<string, readonly CalmMinute[]>;
}

export interface BackOffOptions {
  /** Clients wait too long beyond this multiple of what they wait when it is calm, and this many milliseconds more. */
  readonly times: number;
  readonly slackMs: number;
  /** Part of the fastest rate that is given back in a second. */
  readonly recovery: number;
  /** Part of the fastest rate, and bytes per second, below which nothing is slowed: moving must come to an end. */
  readonly leastPart: number;
  readonly leastBytes: number;
}

export const BACK_OFF: BackOffOptions = {
  times: 2,
  slackMs: 5,
  recovery: 0.05,
  leastPart: 1 / 16,
  leastBytes: 1_048_576,
};

/** Calm is the least of so many minutes: long enough to outlast a busy time, short enough to follow what has changed for good. */
const CALM_MINUTES = 10;

export const UNHURRIED: MovingPace = { limit: Infinity, fastest: 0, slowdowns: 0, calm: new Map() };

function calmAfter(minutes: readonly CalmMinute[], waitMs: number, at: number): readonly CalmMinute[] {
  const minute = Math.floor(at / 60);
  const recent = minutes.filter((each) => each.minute > minute - CALM_MINUTES);
  const last = recent.at(-1);
  if (last?.minute !== minute) return [...recent, { minute, waitMs }];
  return last.waitMs <= waitMs ? recent : [...recent.slice(0, -1), { minute, waitMs }];
}

/**
 * One step of a node's back-off: what moves gives way to clients. Halved when clients wait longer than they do when it is calm, and
 * something moved meanwhile; else a part is given back. What is calm is the least 95th percentile of the last ten minutes.
 *
 * Sources: additive increase and multiplicative decrease (Chiu, Jain 1989) against a base delay that is the minimum of recent minutes, as
 * in LEDBAT (RFC 6817).
 */
export function backOffStep(pace: MovingPace, sample: MovingSample, options: BackOffOptions = BACK_OFF): MovingPace {
  const { times, slackMs, recovery, leastPart, leastBytes } = options;
  const calm = new Map(pace.calm);
  let isCrowded = false;
  for (const [kind, waitMs] of sample.waits) {
    const minutes = calmAfter(pace.calm.get(kind) ?? [], waitMs, sample.at);
    calm.set(kind, minutes);
    if (waitMs > times * Math.min(...minutes.map((each) => each.waitMs)) + slackMs) isCrowded = true;
  }
  const rate = sample.seconds > 0 ? sample.bytes / sample.seconds : 0;
  const fastest = Math.max(pace.fastest, rate);
  const least = Math.max(leastBytes, leastPart * fastest);
  if (isCrowded && sample.bytes > 0) {
    const limit = Math.min(pace.limit, Math.max(least, Math.min(pace.limit, rate) / 2));
    return { limit, fastest, slowdowns: pace.slowdowns + 1, calm };
  }
  const raised = pace.limit + recovery * Math.max(fastest, leastBytes) * sample.seconds;
  // crowded by something else than moving: it neither gets more nor less
  const limit = isCrowded ? pace.limit : raised >= fastest ? Infinity : raised;
  return { limit, fastest, slowdowns: pace.slowdowns, calm };
}
