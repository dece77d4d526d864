import { atMost, type Check } from '../../report/check.ts';
import { contestantsOf } from '../contestant.ts';
import type { Moves } from '../placed.ts';
import type { Change, Setup } from '../setups.ts';
import { Trial } from '../trials.ts';

/**
 * What is promised of the placements: experiments whose outcome is known, with tolerances of about four standard deviations.
 * They are numbered P1 to P20; docs/benchmarks.md lists them.
 */
export interface ClaimSizes {
  /** Seeds each claim is tried under. */
  readonly seeds: readonly number[];
  readonly rackGroups: number;
  /** Groups that tell the partners of a failed node. */
  readonly partnerGroups: number;
  readonly balanceGroups: readonly number[];
  readonly balanceNodes: readonly number[];
  /** What pins must balance. */
  readonly pinned: readonly (readonly [nodes: number, groupBits: number])[];
}

/** Seconds, for `npm test`. */
export const SHORT_CLAIMS: ClaimSizes = {
  seeds: [1],
  rackGroups: 8192,
  partnerGroups: 200_000,
  balanceGroups: [1024, 4096],
  balanceNodes: [15, 50],
  pinned: [[15, 12]],
};

/** A minute or so, for a command. */
export const FULL_CLAIMS: ClaimSizes = {
  seeds: [1, 2, 3],
  rackGroups: 32_768,
  partnerGroups: 200_000,
  balanceGroups: [1024, 4096, 16_384, 65_536],
  balanceNodes: [15, 50, 100, 300, 1000],
  pinned: [
    [15, 12],
    [100, 14],
    [300, 14],
    [1000, 14],
  ],
};

export function changeOf(setup: Setup, id: string): Change {
  const change = setup.changes.find((candidate) => candidate.id === id);
  if (change === undefined) throw new RangeError(`${setup.id} has no change ${id}`);
  return change;
}

/** Trials of one set-up, each made once. */
export class TrialShelf {
  readonly setup: Setup;
  readonly #trials = new Map<string, Trial>();
  readonly #moves = new Map<string, Moves>();

  constructor(setup: Setup) {
    this.setup = setup;
  }

  trial(name: string, seed: number): Trial {
    const key = `${name} ${seed}`;
    let trial = this.#trials.get(key);
    if (trial === undefined) {
      trial = new Trial(contestantsOf([name])[0]!, this.setup, seed);
      this.#trials.set(key, trial);
    }
    return trial;
  }

  moves(name: string, changeId: string, seed: number): Moves {
    const key = `${name} ${changeId} ${seed}`;
    let moves = this.#moves.get(key);
    if (moves === undefined) {
      moves = this.trial(name, seed).compare(changeOf(this.setup, changeId));
      this.#moves.set(key, moves);
    }
    return moves;
  }
}

/** The largest value over all seeds. */
export function worst(seeds: readonly number[], value: (seed: number) => number): number {
  return Math.max(...seeds.map(value));
}

/** A count that is known: under no seed is it further off than the tolerance. */
export function near(
  name: string,
  expected: readonly [value: number, tolerance: number],
  counts: readonly number[],
): Check {
  const [value, tolerance] = expected;
  const off = Math.max(...counts.map((count) => Math.abs(count - value)));
  return atMost(`${name}, off ${value.toLocaleString('en')} by`, off, tolerance, 'copies');
}

export function none(name: string, counts: readonly number[], unit = 'copies'): Check {
  return atMost(name, Math.max(...counts), 0, unit);
}
