import type { NodeId } from '@webdfs/base';
import type { PlacementAlgorithm, Placer } from './algorithm.ts';
import { decide, groupState, mixWord, SALT, streamDraw } from './decision-hash.ts';
import { logUnit } from './logarithm.ts';
import type { Topology } from './topology.ts';

/** A sub-cluster's nodes with weight, and what lies below (is older than) it. */
interface Layer {
  readonly mixed: number;
  readonly nodes: readonly { readonly id: NodeId; readonly mixed: number; readonly weight: number }[];
  readonly weight: number;
  /** Mean weight of a node: the papers assume one weight per sub-cluster. */
  readonly nodeWeight: number;
  readonly nodesBelow: number;
  readonly weightBelow: number;
}

interface Candidate {
  readonly id: NodeId;
  readonly score: number;
}

/** Newest first, the order of the walk. */
function layersOf(topology: Topology): Layer[] {
  const layers: Layer[] = [];
  let nodesBelow = 0;
  let weightBelow = 0;
  for (const subcluster of topology.subclusters) {
    const nodes = subcluster.nodes
      .filter((node) => node.weight > 0)
      .map((node) => ({ id: node.id, mixed: mixWord(node.id), weight: node.weight }));
    if (nodes.length === 0) continue;
    const weight = nodes.reduce((sum, node) => sum + node.weight, 0);
    layers.unshift({
      mixed: mixWord(subcluster.id),
      nodes,
      weight,
      nodeWeight: weight / nodes.length,
      nodesBelow,
      weightBelow,
    });
    nodesBelow += nodes.length;
    weightBelow += weight;
  }
  return layers;
}

/** How many of `left` copies go to this layer: a hypergeometric draw, at least what the layers below cannot take. */
function share(layer: Layer, state: number, left: number): number {
  if (layer.nodesBelow === 0) return left;
  const must = Math.max(0, left - layer.nodesBelow);
  const start = decide(state, layer.mixed, SALT.SUBCLUSTER);
  let here = layer.weight - must * layer.nodeWeight;
  let total = layer.weightBelow + here;
  let taken = must;
  for (let draw = 0; draw < left - must; draw++) {
    const unit = (streamDraw(start, draw) + 0.5) / 4_294_967_296;
    if (taken < layer.nodes.length && unit * total < here) {
      taken += 1;
      here -= layer.nodeWeight;
    }
    total -= layer.nodeWeight;
  }
  return taken;
}

function byScore(a: Candidate, b: Candidate): number {
  return b.score - a.score || a.id - b.id;
}

function prepare(topology: Topology): Placer {
  const layers = layersOf(topology);
  return (group, count) => {
    const state = groupState(topology.seed, group);
    const chosen: Candidate[] = [];
    for (const layer of layers) {
      const left = count - chosen.length;
      if (left === 0) break;
      const taken = share(layer, state, left);
      if (taken === 0) continue;
      const candidates = layer.nodes.map((node) => ({
        id: node.id,
        score: logUnit(decide(state, node.mixed, SALT.NODE)) / node.weight,
      }));
      chosen.push(...candidates.sort(byScore).slice(0, taken));
    }
    // the walk meets newer sub-clusters first; the score gives rank 0 to a node that keeps it when others come and go
    return chosen.sort(byScore).map((candidate) => candidate.id);
  };
}

/**
 * RUSH_R with stable ids and weighted rendezvous inside each sub-cluster. The walk goes from the newest sub-cluster to the
 * oldest and draws how many copies each takes, so the load is proportional to weight. More copies keep the members of
 * fewer (nested sets), not their order.
 *
 * Differences from the papers: streams are seeded by sub-cluster id, not by index, so that dropping an empty sub-cluster
 * moves nothing; nodes inside are chosen by score, not by a shuffle, so that a lost node moves half as much.
 * Source: Honicky and Miller, "Replication Under Scalable Hashing", IPDPS 2004.
 */
export const RUSH_R: PlacementAlgorithm = {
  name: 'rush-r',
  version: 1,
  supports: { order: 'nested', domains: false, exactReweight: false, unevenSubclusters: false },
  prepare,
};
