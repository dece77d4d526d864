import { algorithmOf } from './algorithms.ts';
import { layersOf } from './layers.ts';
import { checkTable } from './slot-table.ts';
import { type Topology, UNIT_WEIGHT } from './topology.ts';

/** What a store asks of its placement, beyond what every algorithm promises. */
export interface Demands {
  /** `prefix`: copies keep their ranks when the number of copies changes. */
  readonly order?: 'prefix';
  /** `false`: it will be published later, so that a table may be missing yet. */
  readonly published?: boolean;
}

function weightRefusals(topology: Topology): string[] {
  const { supports } = algorithmOf(topology);
  const nodes = layersOf(topology).flatMap((layer) => layer.nodes);
  const refused: string[] = [];
  const fraction = nodes.find((node) => node.weight % UNIT_WEIGHT !== 0);
  if (!supports.fractionalWeights && fraction !== undefined) {
    refused.push(`${topology.algorithm} needs whole weights: node ${fraction.id} has ${fraction.weight / UNIT_WEIGHT}`);
  }
  const [first] = nodes;
  const other = nodes.find((node) => node.weight !== first?.weight);
  if (!supports.weights && other !== undefined) {
    refused.push(`${topology.algorithm} knows no weights: those of nodes ${first!.id} and ${other.id} differ`);
  }
  return refused;
}

function widthRefusals(topology: Topology): string[] {
  const { wideSubclusters } = algorithmOf(topology).supports;
  const layers = layersOf(topology).toReversed();
  const asked = { none: [], oldest: layers.slice(0, 1), every: layers }[wideSubclusters];
  const where = wideSubclusters === 'oldest' ? 'the oldest sub-cluster' : 'every sub-cluster';
  return asked
    .filter(({ nodes }) => nodes.length < topology.copies)
    .map(
      ({ id, nodes }) =>
        `${topology.algorithm} needs at least ${topology.copies} nodes with weight in ${where}: sub-cluster ${id} has ${nodes.length}`,
    );
}

/** Why the algorithm of a sound topology cannot serve it; empty: it can. */
export function refusals(topology: Topology, demands: Demands): string[] {
  const { algorithm } = topology;
  const { supports } = algorithmOf(topology);
  const refused = [...weightRefusals(topology), ...widthRefusals(topology)];
  if (!supports.lookup) {
    refused.push(`${algorithm} needs a directory of all groups, not a map: it is a baseline for experiments`);
  }
  if (demands.order === 'prefix' && supports.order !== 'prefix') {
    refused.push(`${algorithm} keeps the nodes of a group, but not their order, when the number of copies changes`);
  }
  const tableIsLate = demands.published === false && topology.table === undefined;
  if (supports.stores === 'table' && !tableIsLate) refused.push(...checkTable(topology));
  return refused;
}
