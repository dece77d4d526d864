/** One thing to measure, over and over. */
export interface Contestant {
  readonly name: string;
  /** Bytes that one run counts for. */
  readonly bytes: number;
  /** Slow ones are measured in fewer rounds. */
  readonly slow?: boolean;
  readonly run: () => void | Promise<void>;
}

/** Of the rounds of one contestant, bytes per second of CPU time. */
export interface Rate {
  readonly name: string;
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export interface Sampling {
  readonly rounds: number;
  /** A sample runs until so many bytes are done, at least once. */
  readonly sampleBytes: number;
  /** The same of slow ones. */
  readonly slowBytes: number;
}

/** Rounds of the slow ones, at most. */
const SLOW_ROUNDS = 5;

/** CPU time of the process with all its threads: unlike the clock it does not count what other programs took. */
async function sample({ bytes, run }: Contestant, sampleBytes: number): Promise<number> {
  const runs = Math.max(1, Math.round(sampleBytes / bytes));
  const before = process.cpuUsage();
  for (let i = 0; i < runs; i++) {
    const done = run();
    if (done !== undefined) await done;
  }
  const { user, system } = process.cpuUsage(before);
  return (runs * bytes) / (Math.max(1, user + system) / 1e6);
}

/**
 * Measures contestants in turn, round by round, so that a disturbance falls on all of them; the first round only warms up.
 */
export async function measureRates(contestants: readonly Contestant[], sampling: Sampling): Promise<Rate[]> {
  const rates = contestants.map((): number[] => []);
  for (let round = 0; round <= sampling.rounds; round++) {
    for (const [i, contestant] of contestants.entries()) {
      if (contestant.slow === true && round > SLOW_ROUNDS) continue;
      const rate = await sample(contestant, contestant.slow === true ? sampling.slowBytes : sampling.sampleBytes);
      if (round > 0) rates[i]!.push(rate);
    }
  }
  return contestants.map(({ name }, i) => {
    const sorted = rates[i]!.toSorted((a, b) => a - b);
    return { name, median: sorted[sorted.length >> 1]!, least: sorted[0]!, most: sorted.at(-1)! };
  });
}
