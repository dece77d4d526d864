import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm, Placer } from './algorithm.ts';
import { byRank } from './by-rank.ts';
import { decide, groupState, mixWord, SALT } from './decision-hash.ts';
import { type Layer, layersOf, STEP } from './layers.ts';
import type { Topology } from './topology.ts';

/** A part of the tree of sub-clusters that has weight: 2^level leaves from `first` on. A leaf has a layer. */
interface Tree {
  readonly mixed: number;
  readonly level: number;
  readonly weight: number;
  readonly sides?: readonly [Tree, Tree];
  readonly layer?: Layer;
}

/** Leaf of the oldest sub-cluster is 0: they are numbered from 1, whatever number 0 is comes last. */
function leafOf(layer: Layer): number {
  return (layer.id - 1) >>> 0;
}

/** The tree over `layers`, which all lie within 2^level leaves from `first` on. Nodes with one side alone are left out. */
function treeOf(layers: readonly Layer[], level: number, first: number): Tree | undefined {
  const [only] = layers;
  if (only === undefined) return undefined;
  const weight = layers.reduce((sum, layer) => sum + layer.weight, 0);
  if (layers.length === 1) return { mixed: mixWord(leafOf(only)), level: 0, weight, layer: only };
  const middle = first + 2 ** (level - 1);
  const left = layers.filter((layer) => leafOf(layer) < middle);
  const right = layers.filter((layer) => leafOf(layer) >= middle);
  const older = treeOf(left, level - 1, first);
  const newer = treeOf(right, level - 1, middle);
  if (older === undefined || newer === undefined) return older ?? newer;
  return { mixed: mixWord(first), level, weight, sides: [older, newer] };
}

function leafFor(tree: Tree, state: number, rank: number): Tree {
  let at = tree;
  while (at.sides !== undefined) {
    const draw = decide(state, at.mixed, SALT.FIRST_TRIAL + rank * 64 + at.level);
    const [left, right] = at.sides;
    at = ((draw + 0.5) / 4_294_967_296) * at.weight < left.weight ? left : right;
  }
  return at;
}

function prepare(topology: Topology): Placer {
  const tree = treeOf(layersOf(topology), 32, 0);
  return byRank(topology, (group, rank): NodeId | undefined => {
    if (tree === undefined) return undefined;
    const state = groupState(topology.seed, group);
    const leaf = leafFor(tree, state, rank);
    const nodes = leaf.layer!.nodes;
    return nodes[(decide(state, leaf.mixed, SALT.SUBCLUSTER) + rank * STEP) % nodes.length]!.id;
  });
}

/**
 * RUSH_T: each copy goes down a binary tree whose leaves are the sub-clusters, left or right by weight, and steps inside the
 * leaf by multiples of a prime. A sub-cluster's id is its leaf (1 is the first), so a tree that grows keeps its old nodes and
 * a sub-cluster that is gone changes nothing but weights.
 *
 * Every sub-cluster must have a node for each copy: all copies may come to one leaf (a copy that finds no place goes to the
 * rendezvous order). Cost: logarithmic in the sub-clusters.
 * Source: Honicky and Miller, "Replication Under Scalable Hashing", IPDPS 2004.
 */
export const RUSH_T: PlacementAlgorithm = {
  name: 'rush-t',
  version: 1,
  supports: {
    order: 'prefix',
    domains: false,
    exactReweight: false,
    exactGrowth: false,
    weights: true,
    fractionalWeights: true,
    unevenSubclusters: false,
    wideSubclusters: 'every',
    stores: 'nothing',
    lookup: true,
  },
  prepare,
};
