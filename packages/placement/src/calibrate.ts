import { domainWeights, withoutDomains } from './domains.ts';
import { type Topology, UNIT_FACTOR } from './topology.ts';

/** Below this share of the groups per domain the bias is under 2.5 % and not worth a factor. */
const NEEDLESS_BELOW = 0.13;
/** No domain is asked to be in more than this share of the groups: a certainty has no rate. */
const MOST = 0.98;
const MIDPOINTS = 160;
const MAX_ROUNDS = 60;
const TOLERANCE = 1e-4;

/** The share of the groups each domain shall be in: R · W_d / W, what exceeds `MOST` spread over the others. */
function targetsOf(weights: readonly number[], copies: number): number[] {
  const capped = new Set<number>();
  for (;;) {
    const free = weights.reduce((sum, weight, i) => sum + (capped.has(i) ? 0 : weight), 0);
    const left = copies - MOST * capped.size;
    const targets = weights.map((weight, i) => (capped.has(i) ? MOST : (left * weight) / free));
    const over = targets.findIndex((target, i) => target > MOST && !capped.has(i));
    if (over === -1) return targets;
    for (const [i, target] of targets.entries()) if (target > MOST) capped.add(i);
  }
}

/**
 * For each prefix of `chances`, the probabilities that 0, 1, … copies − 1 of its items have arrived.
 * Row i covers items 0..i−1.
 */
function arrivals(chances: Float64Array, copies: number): Float64Array {
  const rows = new Float64Array((chances.length + 1) * copies);
  rows[0] = 1;
  for (const [i, chance] of chances.entries()) {
    const from = i * copies;
    for (let k = 0; k < copies; k++) {
      rows[from + copies + k] = rows[from + k]! * (1 - chance) + (k === 0 ? 0 : rows[from + k - 1]! * chance);
    }
  }
  return rows;
}

/** The probability that fewer than `copies` of all items but `i` have arrived. */
function fewerWithout(i: number, before: Float64Array, after: Float64Array, copies: number, count: number): number {
  let sum = 0;
  for (let a = 0; a < copies; a++) {
    let rest = 0;
    for (let b = 0; a + b < copies; b++) rest += after[(count - 1 - i) * copies + b]!;
    sum += before[i * copies + a]! * rest;
  }
  return sum;
}

/**
 * The probability that each item is among the first `copies` to arrive, when item i arrives after an exponential time of
 * rate λ_i: the integral over its own time t of λ e^(−λt) · P(fewer than `copies` others by t), by midpoints of
 * t = τ · y/(1 − y), where τ is about when the last of the first arrives.
 */
export function inclusions(rates: readonly number[], copies: number): number[] {
  const count = rates.length;
  const sums = Array.from({ length: count }, () => 0);
  const chances = new Float64Array(count);
  const scale = copies / rates.reduce((sum, rate) => sum + rate, 0);
  for (let step = 0; step < MIDPOINTS; step++) {
    const y = (step + 0.5) / MIDPOINTS;
    const t = (scale * y) / (1 - y);
    for (const [i, rate] of rates.entries()) chances[i] = -Math.expm1(-rate * t);
    const before = arrivals(chances, copies);
    const after = arrivals(chances.toReversed(), copies);
    const width = scale / (MIDPOINTS * (1 - y) * (1 - y));
    for (const [i, rate] of rates.entries()) {
      sums[i]! += rate * Math.exp(-rate * t) * width * fewerWithout(i, before, after, copies, count);
    }
  }
  return sums;
}

/** Rates whose inclusions are the targets. */
function ratesFor(targets: readonly number[], copies: number): number[] {
  let rates = targets.map((target) => -Math.log1p(-target));
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = inclusions(rates, copies);
    const worst = Math.max(...targets.map((target, i) => Math.abs(found[i]! / target - 1)));
    if (worst < TOLERANCE) break;
    rates = rates.map((rate, i) => rate * (Math.log1p(-targets[i]!) / Math.log1p(-Math.min(found[i]!, 1 - 1e-9))));
  }
  return rates;
}

/**
 * The topology with calibration factors that make the load of every domain proportional to its weight. Without them a heavy
 * domain gets less than its share, because it is drawn once per group at most.
 *
 * The publisher of a topology calls this once; readers only use the stored integers. Call it on planned changes, never for
 * a failure: all domains shift a little. Comes back without factors where they are needless (small shares, algorithms other than `wrd` and `rendezvous`) or
 * impossible (no more domains than copies: every domain is in every group).
 *
 * Cost: a few milliseconds for tens of domains, about 0.2 s for a thousand.
 * Source: inclusion probabilities of sampling by exponential order times (Poisson-binomial counts by dynamic programming).
 */
export function calibrate(topology: Topology): Topology {
  const { factors: _, ...plain } = topology;
  if (topology.algorithm !== 'wrd' && topology.algorithm !== 'rendezvous') return plain;
  const weights = domainWeights(topology.algorithm === 'wrd' ? topology : withoutDomains(topology));
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
  const largest = Math.max(0, ...weights.values());
  if (topology.copies < 1 || MOST * weights.size <= topology.copies) return plain;
  if ((topology.copies * largest) / total < NEEDLESS_BELOW) return plain;

  const rates = ratesFor(targetsOf([...weights.values()], topology.copies), topology.copies);
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / total;
  const factors: Record<string, number> = {};
  for (const [i, [domain, weight]] of [...weights].entries()) {
    factors[domain] = Math.max(1, Math.round((rates[i]! / (weight * mean)) * UNIT_FACTOR));
  }
  return { ...plain, factors };
}
