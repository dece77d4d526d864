import { atMost, type Check } from '../../report/check.ts';
import { biasByWeight, type Counts, sharedRackShare } from '../placed.ts';
import { foundingSetup, rackSetup } from '../setups.ts';
import { spreadOf } from '../spread.ts';
import { type ClaimSizes, near, none, TrialShelf, worst } from './claim.ts';

/** Copies at nodes `first` to `last`. */
function between(counts: Counts, first: number, last: number): number {
  return [...counts].reduce((sum, [node, count]) => sum + (node >= first && node <= last ? count : 0), 0);
}

/** P2, P8, P9: RUSH_P. Names and seeds of the original are fixed, so it is tried once. */
function rushPClaims(shelf: TrialShelf, seeds: readonly number[]): Check[] {
  const added = seeds.map((seed) => shelf.moves('rush-p', 'add-8', seed));
  const drop = shelf.moves('original-rush-p', 'drop', 0);
  const remove = shelf.moves('original-rush-p', 'remove-15', 0);
  return [
    near(
      'P2 rush-p: add weight 8',
      [16_000, 250],
      added.map(({ count }) => count),
    ),
    none(
      'P2 rush-p: moved between old nodes',
      added.map(({ to }) => between(to, 1, 15)),
    ),
    near('P8 RUSH_P of 2009: drop the first sub-cluster, sets', [21_620, 300], [drop.count]),
    near('P8 RUSH_P of 2009: drop the first sub-cluster, ranks', [27_622, 350], [drop.ranks]),
    near('P9 RUSH_P of 2009: remove node 15, sets', [13_973, 250], [remove.count]),
    near('P9 RUSH_P of 2009: remove node 15, ranks', [16_648, 300], [remove.ranks]),
  ];
}

/** P2 to P7: RUSH_R with stable ids, choosing inside by rendezvous or by shuffle; P10: RUSH_T. */
function rushRClaims(shelf: TrialShelf, seeds: readonly number[]): Check[] {
  const [add, drain, dropped, reweight, remove1, remove15] = (
    ['add-8', 'drain', 'drop-drained', 'reweight', 'remove-1', 'remove-15'] as const
  ).map((change) => seeds.map((seed) => shelf.moves('rush-r', change, seed)));
  const shuffled = (change: string): number[] => seeds.map((seed) => shelf.moves('rush-r-shuffle', change, seed).count);
  const rushT = seeds.map((seed) => shelf.moves('rush-t', 'add-8', seed).count);
  return [
    near(
      'P2 rush-r: add weight 8',
      [16_000, 250],
      add!.map(({ count }) => count),
    ),
    none(
      'P2 rush-r: moved between old nodes',
      add!.map(({ to }) => between(to, 1, 15)),
    ),
    near(
      'P3 rush-r: drain the first sub-cluster',
      [5657, 230],
      drain!.map(({ count }) => count),
    ),
    none(
      'P3 rush-r: left sub-cluster 3',
      drain!.map(({ from }) => between(from, 11, 15)),
    ),
    near(
      'P3 rush-r: left sub-cluster 2',
      [1335, 165],
      drain!.map(({ from }) => between(from, 6, 10)),
    ),
    none(
      'P4 rush-r: then drop it',
      dropped!.map(({ count }) => count),
    ),
    near(
      'P5 rush-r: re-weight 2 to 4',
      [5414, 220],
      reweight!.map(({ count }) => count),
    ),
    none(
      'P5 rush-r: left sub-cluster 2',
      reweight!.map(({ from }) => between(from, 6, 10)),
    ),
    near('P6 rush-r-shuffle: remove node 1', [2791, 170], shuffled('remove-1')),
    near(
      'P6 rush-r: remove node 1',
      [1755, 150],
      remove1!.map(({ count }) => count),
    ),
    none(
      'P6 rush-r: left sub-cluster 3',
      remove1!.map(({ from }) => between(from, 11, 15)),
    ),
    near(
      'P6 rush-r: left sub-cluster 2',
      [320, 65],
      remove1!.map(({ from }) => between(from, 6, 10)),
    ),
    near('P7 rush-r-shuffle: remove node 15', [8267, 290], shuffled('remove-15')),
    near(
      'P7 rush-r: remove node 15',
      [4363, 230],
      remove15!.map(({ count }) => count),
    ),
    near('P10 rush-t: add weight 8', [18_321, 300], rushT),
  ];
}

const ONE_NODE = [
  ['remove-1', 1],
  ['remove-15', 15],
  ['drain-7', 7],
  ['add-16', 16],
] as const;

/** P11, P12: flat rendezvous. */
function rendezvousClaims(shelf: TrialShelf, seeds: readonly number[]): Check[] {
  const strangers = (seed: number): number =>
    Math.max(
      ...ONE_NODE.map(([change, node]) => {
        const { count, from, to } = shelf.moves('rendezvous-uncalibrated', change, seed);
        return count - (from.get(node) ?? 0) - (to.get(node) ?? 0);
      }),
    );
  const excess = (seed: number): number =>
    Math.max(
      ...shelf.setup.changes.map((change) => {
        const { moved, optimum } = shelf.trial('rendezvous', seed).move(change);
        return moved - (1.04 * optimum + 4 * Math.sqrt(optimum));
      }),
    );
  return [
    none('P11 rendezvous, uncalibrated: moved, but not of the one node that changed', seeds.map(strangers)),
    atMost('P12 rendezvous: moved beyond 1.04 of the optimum and chance', worst(seeds, excess), 0, 'copies'),
  ];
}

/** P2 to P12, in the founding set-up. */
export function movementClaims({ seeds }: ClaimSizes): Check[] {
  const shelf = new TrialShelf(foundingSetup(10_000));
  return [...rushPClaims(shelf, seeds), ...rushRClaims(shelf, seeds), ...rendezvousClaims(shelf, seeds)];
}

/** P13: WRD with racks; means over the seeds. */
export function rackClaims({ seeds, rackGroups }: ClaimSizes): Check[] {
  const shelf = new TrialShelf(rackSetup(rackGroups));
  const trials = seeds.map((seed) => shelf.trial('wrd', seed));
  const placed = trials.map((trial) => trial.place(shelf.setup.subclusters));
  const biases = placed.map(biasByWeight);
  const meanBias = biases[0]!.map((_, i) => spreadOf(biases.map((bias) => bias[i]![1])).mean);
  return [
    ...shelf.setup.changes.map((change) => {
      const factors = trials.map((trial) => trial.move(change)).map(({ moved, optimum }) => moved / optimum);
      return atMost(`P13 wrd: ${change.title}, moved / optimum`, spreadOf(factors).mean, 1.08, 'ratio');
    }),
    none('P13 wrd: groups with two copies in one rack', placed.map(sharedRackShare), 'share'),
    atMost('P13 wrd: bias at any weight', Math.max(...meanBias.map((bias) => Math.abs(bias - 1))), 0.01, 'share'),
  ];
}
