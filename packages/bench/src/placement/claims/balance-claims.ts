import { balancePins } from '@webdfs/placement';
import { atMost, type Check } from '../../report/check.ts';
import { contestantsOf } from '../contestant.ts';
import { copiesPerNode, fullestByChance, measureGroupBalance } from '../group-balance.ts';
import { subclustersOf } from '../layout.ts';
import { PUBLISHED_SERVERS } from '../original/published.ts';
import { balanceOf } from '../placed.ts';
import { foundingSetup } from '../setups.ts';
import { partnerRatios } from '../trials.ts';
import { type ClaimSizes, TrialShelf, worst } from './claim.ts';

/** P1: load in proportion to weight. */
function distributionClaims({ seeds }: ClaimSizes): Check[] {
  const shelf = new TrialShelf(foundingSetup(10_000));
  return ['rush-p', 'rush-r', 'rush-t', 'rendezvous'].map((name) => {
    const chiSquare = (seed: number): number =>
      balanceOf(shelf.trial(name, seed).place(shelf.setup.subclusters)).chiSquare;
    return atMost(`P1 ${name}: distribution, chi-square of 14 degrees`, worst(seeds, chiSquare), 36, '');
  });
}

/** P16: who stands in for a failed node. */
function partnerClaims({ seeds, partnerGroups }: ClaimSizes): Check[] {
  const shelf = new TrialShelf(foundingSetup(partnerGroups));
  const off = (seed: number): number => {
    const placed = shelf.trial('rendezvous-uncalibrated', seed).place(shelf.setup.subclusters);
    const ratios = shelf.setup.failing.flatMap((node) => [...partnerRatios(placed, node).values()]);
    return Math.max(...ratios.map((ratio) => Math.abs(ratio - 1)));
  };
  return [
    atMost('P16 rendezvous: partners of a failed node, off their part by weight', worst(seeds, off), 0.1, 'share'),
  ];
}

/** P19: balance by the number of groups. */
function groupClaims({ seeds, balanceGroups, balanceNodes }: ClaimSizes): Check[] {
  const [rendezvous] = contestantsOf(['rendezvous']);
  const off = (seed: number): number => {
    const found = balanceNodes.flatMap((count) => {
      const cluster = { name: `${count}`, subclusters: subclustersOf([1], count), copies: 3 };
      return measureGroupBalance(rendezvous!, cluster, { groups: balanceGroups, seed });
    });
    return Math.max(
      ...found
        .filter(({ groups, nodes }) => copiesPerNode(groups, nodes, 3) > 40)
        .map(({ groups, nodes, fullest }) => Math.abs(fullest - fullestByChance(groups, nodes, 3))),
    );
  };
  return [atMost('P19 rendezvous: fullest / mean, off the formula', worst(seeds, off), 0.1, '')];
}

function pinClaims({ pinned }: ClaimSizes): Check[] {
  return pinned.map(([nodes, groupBits]) => {
    const subclusters = subclustersOf([1], nodes);
    const { after } = balancePins({ algorithm: 'wrd', version: 1, seed: 1, copies: 3, subclusters }, { groupBits });
    return atMost(`pins: ${nodes} nodes, ${2 ** groupBits} groups, fullest / mean`, after, 1.02, 'ratio');
  });
}

/** The test of 15 servers with keys of 64 bits. */
function serverClaims({ seeds }: ClaimSizes): Check[] {
  const subclusters = subclustersOf([1, 1, 1, 1, 1], 3);
  const [rushR] = contestantsOf(['rush-r']);
  const balance = seeds.map((seed) =>
    balanceOf(rushR!.place({ subclusters, copies: 2, groupCount: PUBLISHED_SERVERS.objects, seed })),
  );
  return [
    atMost('15 servers, rush-r: chi-square of 14 degrees', Math.max(...balance.map((one) => one.chiSquare)), 36, ''),
    atMost('15 servers, rush-r: fullest / mean', Math.max(...balance.map((one) => one.largest)), 1.025, 'ratio'),
  ];
}

/** P1, P16, P19, pins, and the test of 15 servers: loads. */
export function balanceClaims(sizes: ClaimSizes): Check[] {
  return [
    ...distributionClaims(sizes),
    ...partnerClaims(sizes),
    ...groupClaims(sizes),
    ...pinClaims(sizes),
    ...serverClaims(sizes),
  ];
}
