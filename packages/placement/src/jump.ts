import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm, Placer } from './algorithm.ts';
import { byRank } from './by-rank.ts';
import { decide, groupState, mixWord, SALT, streamDraw } from './decision-hash.ts';
import { layersOf } from './layers.ts';
import type { Topology } from './topology.ts';

/** Hashes that one rank may try before it goes to the rendezvous order. */
const MAX_TRIES = 32;

/** The bucket of 0..count−1 that a stream jumps to. About ln(count) steps. */
function jump(start: number, count: number): number {
  let bucket = -1;
  let next = 0;
  for (let step = 0; next < count; step++) {
    bucket = next;
    next = Math.floor((bucket + 1) / ((streamDraw(start, step) + 0.5) / 4_294_967_296));
  }
  return bucket;
}

function prepare(topology: Topology): Placer {
  const nodes = layersOf(topology)
    .toReversed()
    .flatMap((layer) => layer.nodes.map((node) => node.id));
  return byRank(topology, (group, rank, free): NodeId | undefined => {
    const state = groupState(topology.seed, group);
    for (let trial = 0; trial < MAX_TRIES; trial++) {
      const node = nodes[jump(decide(state, mixWord(rank), SALT.FIRST_TRIAL + trial), nodes.length)]!;
      if (free(node)) return node;
    }
    return undefined;
  });
}

/**
 * Jump consistent hash over the nodes in the order of their age, every copy with a hash of its own, hashed again until it
 * meets no other. Knows no weights, and only the newest node can go away cheaply: good for counts of shards, not for disks.
 *
 * Cost: logarithmic in the nodes.
 * Source: Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014.
 */
export const JUMP: PlacementAlgorithm = {
  name: 'jump',
  version: 1,
  supports: {
    order: 'prefix',
    domains: false,
    exactReweight: false,
    exactGrowth: false,
    weights: false,
    fractionalWeights: true,
    unevenSubclusters: false,
    wideSubclusters: 'none',
    stores: 'nothing',
    lookup: true,
  },
  prepare,
};
