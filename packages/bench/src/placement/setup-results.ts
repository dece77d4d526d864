import type { NodeId } from '@webdfs/base';
import type { Contestant } from './contestant.ts';
import { loadsOf } from './placed.ts';
import type { Setup } from './setups.ts';
import { type Spread, spreadOf } from './spread.ts';
import { type ChangeTrial, partnerRatios, type StillTrial, stillTrial, Trial } from './trials.ts';

/** What a contestant did in a set-up, over all seeds. */
export interface SetupResult {
  readonly name: string;
  readonly chiSquare: Spread;
  readonly largest: Spread;
  readonly smallest: Spread;
  readonly deviation: Spread;
  readonly bias: readonly (readonly [weight: number, bias: Spread])[];
  readonly sharedRacks: Spread;
  /** Mean copies per node. */
  readonly loads: ReadonlyMap<number, number>;
  /** By failing node: each survivor's part relative to its weight, mean. */
  readonly partners: ReadonlyMap<NodeId, ReadonlyMap<number, number>>;
  /** By the change's id; a text tells why the contestant cannot make it. */
  readonly moves: ReadonlyMap<string, MoveResult | string>;
}

export interface MoveResult {
  readonly moved: Spread;
  readonly ranks: Spread;
  readonly astray: Spread;
  /** The same under every seed. */
  readonly optimum: number;
}

export interface SetupResults {
  readonly setup: Setup;
  readonly seeds: readonly number[];
  readonly results: readonly SetupResult[];
  /** Contestants that cannot place the set-up at all, and why. */
  readonly refused: readonly { readonly name: string; readonly reason: string }[];
}

/** The mean of maps with the same keys. */
function meanOf(maps: readonly ReadonlyMap<number, number>[]): Map<number, number> {
  return new Map(
    [...maps[0]!.keys()].map((key) => [key, maps.reduce((sum, map) => sum + map.get(key)!, 0) / maps.length]),
  );
}

function moveResult(trials: readonly ChangeTrial[]): MoveResult {
  return {
    moved: spreadOf(trials.map((trial) => trial.moved)),
    ranks: spreadOf(trials.map((trial) => trial.ranks)),
    astray: spreadOf(trials.map((trial) => trial.astray)),
    optimum: trials[0]!.optimum,
  };
}

/** A contestant through the whole set-up. @returns why it cannot place it, if that is so */
export function runContestant(contestant: Contestant, setup: Setup, seeds: readonly number[]): SetupResult | string {
  const reason = contestant.refusal({ ...setup, seed: seeds[0]! });
  if (reason !== undefined) return reason;
  const trials = (contestant.seeded ? seeds : seeds.slice(0, 1)).map((seed) => new Trial(contestant, setup, seed));
  const placed = trials.map((trial) => trial.place(setup.subclusters));
  const still = placed.map(stillTrial);
  const over = (value: (trial: StillTrial) => number): Spread => spreadOf(still.map(value));
  const moves = setup.changes.map((change): [string, MoveResult | string] => {
    const reason = trials[0]!.refusal(change);
    return [change.id, reason ?? moveResult(trials.map((trial) => trial.move(change)))];
  });
  const scale = setup.groupCount / placed[0]!.groupCount;
  return {
    name: contestant.name,
    chiSquare: over((trial) => trial.chiSquare),
    largest: over((trial) => trial.largest),
    smallest: over((trial) => trial.smallest),
    deviation: over((trial) => trial.deviation),
    bias: still[0]!.bias.map(([weight], i) => [weight, over((trial) => trial.bias[i]![1])]),
    sharedRacks: over((trial) => trial.sharedRacks),
    loads: new Map([...meanOf(placed.map(loadsOf))].map(([node, load]) => [node, load * scale])),
    partners: new Map(
      setup.failing.map((node) => [node, meanOf(placed.map((placement) => partnerRatios(placement, node)))]),
    ),
    moves: new Map(moves),
  };
}
