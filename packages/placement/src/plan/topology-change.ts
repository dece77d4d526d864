import { algorithmOf } from '../algorithms.ts';
import { publishTopology } from '../publish.ts';
import { balancePins } from '../balance-pins.ts';
import { domainOf, placeableNodes } from '../domains.ts';
import type { NodeId } from '../ids.ts';
import { PlacementError } from '../placement-error.ts';
import {
  type AlgorithmName,
  type DomainLabel,
  type Subcluster,
  type Topology,
  type TopologyNode,
  UNIT_WEIGHT,
  type Weight,
} from '../topology.ts';

/** Some nodes of a topology: by id, by sub-cluster, or by what they are labelled with. */
export type NodeChoice =
  | { readonly by: 'id'; readonly ids: readonly number[] }
  | { readonly by: 'subcluster'; readonly id: number }
  | { readonly by: 'label'; readonly label: DomainLabel; readonly value: string };

type Labels = TopologyNode['labels'];

/** One thing that an operator does to a topology. Ids that are not given follow the highest ever used. */
export type TopologyChange =
  | {
      readonly type: 'add-subcluster';
      readonly count: number;
      readonly weight: Weight;
      readonly labels: Labels;
      readonly id?: number;
    }
  | {
      readonly type: 'add-nodes';
      readonly subcluster: number;
      readonly count: number;
      /** Missing: that of the sub-cluster's last node with weight. */
      readonly weight?: Weight;
      readonly labels: Labels;
    }
  | { readonly type: 'drain'; readonly nodes: NodeChoice }
  | { readonly type: 'reweight'; readonly nodes: NodeChoice; readonly weight: Weight }
  | { readonly type: 'rescale'; readonly nodes: NodeChoice; readonly times: number }
  | { readonly type: 'remove'; readonly nodes: NodeChoice }
  | { readonly type: 'relabel'; readonly nodes: NodeChoice; readonly labels: Labels }
  | { readonly type: 'algorithm'; readonly algorithm: AlgorithmName }
  | { readonly type: 'domain'; readonly domain: DomainLabel | undefined }
  | { readonly type: 'copies'; readonly copies: number };

const MAX_NODE_ID = 65_535;
const MAX_WEIGHT = 0xffff_ffff;

function refuse(change: TopologyChange, what: string): never {
  throw new PlacementError('INVALID', `${change.type}: ${what}`, { details: { entry: change.type } });
}

function chooser(choice: NodeChoice): (subcluster: Subcluster, node: TopologyNode) => boolean {
  switch (choice.by) {
    case 'id': {
      const ids = new Set(choice.ids);
      return (_, node) => ids.has(node.id);
    }
    case 'subcluster':
      return (subcluster) => subcluster.id === choice.id;
    case 'label':
      return (_, node) => node.labels[choice.label] === choice.value;
  }
}

/** How a choice is spoken of. */
function nameOf(choice: NodeChoice): string {
  switch (choice.by) {
    case 'id':
      return `node ${choice.ids.join(', ')}`;
    case 'subcluster':
      return `sub-cluster ${choice.id}`;
    case 'label':
      return `${choice.label} ${choice.value}`;
  }
}

/** Changes the chosen nodes; undefined takes a node out. @throws PlacementError INVALID if a node that is named does not exist */
function changeNodes(
  topology: Topology,
  change: Extract<TopologyChange, { readonly nodes: NodeChoice }>,
  become: (node: TopologyNode) => TopologyNode | undefined,
): Topology {
  const { nodes: choice } = change;
  const isChosen = chooser(choice);
  const found = new Set<number>();
  const subclusters = topology.subclusters.map((subcluster) => ({
    ...subcluster,
    nodes: subcluster.nodes.flatMap((node) => {
      if (!isChosen(subcluster, node)) return [node];
      found.add(node.id);
      return become(node) ?? [];
    }),
  }));
  if (choice.by === 'id') {
    const missing = choice.ids.find((id) => !found.has(id));
    if (missing !== undefined) refuse(change, `there is no node ${missing}`);
  }
  if (found.size === 0) refuse(change, `there is no node in ${nameOf(choice)}`);
  // an empty sub-cluster places nothing, and no map keeps one
  return { ...topology, subclusters: subclusters.filter((subcluster) => subcluster.nodes.length > 0) };
}

function weighed(change: TopologyChange, node: TopologyNode, weight: number): TopologyNode {
  const whole = Math.round(weight);
  if (!Number.isFinite(weight) || whole < 0 || whole > MAX_WEIGHT) {
    refuse(change, `node ${node.id} would have weight ${weight / UNIT_WEIGHT}, allowed are 0 to 65 535`);
  }
  return { ...node, weight: whole };
}

function newNodes(
  topology: Topology,
  change: Extract<TopologyChange, { readonly count: number }>,
  weight: Weight,
): TopologyNode[] {
  const highest = topology.subclusters.reduce(
    (most, { nodes }) => nodes.reduce((m, { id }) => Math.max(m, id), most),
    0,
  );
  const { count, labels } = change;
  if (!Number.isInteger(count) || count < 1 || highest + count > MAX_NODE_ID) {
    refuse(change, `cannot add ${count} nodes: ids go up to ${MAX_NODE_ID}, the highest is ${highest}`);
  }
  return Array.from({ length: count }, (_, i) =>
    weighed(change, { id: (highest + 1 + i) as NodeId, weight: 0, labels }, weight),
  );
}

function addSubcluster(topology: Topology, change: Extract<TopologyChange, { type: 'add-subcluster' }>): Topology {
  const id = change.id ?? topology.subclusters.reduce((most, subcluster) => Math.max(most, subcluster.id), 0) + 1;
  if (topology.subclusters.some((subcluster) => subcluster.id === id)) refuse(change, `there is a sub-cluster ${id}`);
  const added: Subcluster = { id, nodes: newNodes(topology, change, change.weight) };
  return { ...topology, subclusters: [...topology.subclusters, added] };
}

function addNodes(topology: Topology, change: Extract<TopologyChange, { type: 'add-nodes' }>): Topology {
  const grown = topology.subclusters.find((subcluster) => subcluster.id === change.subcluster);
  if (grown === undefined) refuse(change, `there is no sub-cluster ${change.subcluster}`);
  const weight = change.weight ?? grown.nodes.findLast((node) => node.weight > 0)?.weight;
  if (weight === undefined) refuse(change, `sub-cluster ${grown.id} has no weight to go by: give one`);
  const nodes = [...grown.nodes, ...newNodes(topology, change, weight)];
  return {
    ...topology,
    subclusters: topology.subclusters.map((subcluster) => (subcluster === grown ? { ...grown, nodes } : subcluster)),
  };
}

function applyChange(topology: Topology, change: TopologyChange): Topology {
  switch (change.type) {
    case 'add-subcluster':
      return addSubcluster(topology, change);
    case 'add-nodes':
      return addNodes(topology, change);
    case 'drain':
      return changeNodes(topology, change, (node) => ({ ...node, weight: 0 }));
    case 'reweight':
      return changeNodes(topology, change, (node) => weighed(change, node, change.weight));
    case 'rescale':
      return changeNodes(topology, change, (node) => weighed(change, node, node.weight * change.times));
    case 'remove':
      return changeNodes(topology, change, () => undefined);
    case 'relabel':
      return changeNodes(topology, change, (node) => ({ ...node, labels: { ...node.labels, ...change.labels } }));
    case 'algorithm':
      return { ...topology, algorithm: change.algorithm };
    case 'domain': {
      const { domain: _, ...flat } = topology;
      return change.domain === undefined ? flat : { ...flat, domain: change.domain };
    }
    case 'copies':
      return { ...topology, copies: change.copies };
  }
}

export interface ChangeOptions {
  /** log2 of the number of groups. */
  readonly groupBits: number;
  /**
   * Leave calibration factors as they are. Making them anew shifts every domain a little: the load is truer afterwards, and
   * more moves, most of all with few domains.
   */
  readonly keepFactors?: boolean;
  /** Add pins that bring the fullest node within 2 % of its share. Without it, earlier pins that help no more go. */
  readonly balance?: boolean;
}

/** The factors that were, of the domains that are. */
function keptFactors(before: Topology, after: Topology): Topology {
  const { factors: _, ...plain } = after;
  const domains = new Set(after.subclusters.flatMap(({ nodes }) => nodes.map((node) => domainOf(after, node))));
  const kept = Object.entries(before.factors ?? {}).filter(([domain]) => domains.has(domain));
  return kept.length === 0 ? plain : { ...plain, factors: Object.fromEntries(kept) };
}

/** With the pins that still help, and with those that balance asks for. */
function withPins(topology: Topology, { groupBits, balance = false }: ChangeOptions): Topology {
  if ((!balance && topology.pins === undefined) || placeableNodes(topology).length === 0) return topology;
  const { pins: _, ...rest } = topology;
  const { pins, added } = balancePins(topology, { groupBits });
  const kept = balance ? pins : pins.filter((pin) => !added.includes(pin));
  return kept.length === 0 ? rest : { ...rest, pins: kept };
}

/**
 * The topology after some changes, one after the other, as it would be published: factors and tables are made anew, pins that
 * help no more are gone. What it amounts to is for `validateTopology` and `planChange` to say.
 *
 * @throws PlacementError INVALID if a change names what is not there, BAD_CONFIG
 */
export function changeTopology(
  topology: Topology,
  changes: readonly TopologyChange[],
  options: ChangeOptions,
): Topology {
  const { groupBits, keepFactors = false } = options;
  let changed = topology;
  for (const change of changes) changed = applyChange(changed, change);
  const ids = new Set(changed.subclusters.flatMap(({ nodes }) => nodes.map(({ id }) => id)));
  const { pins, ...rest } = changed;
  const kept = pins?.filter(({ from, to }) => ids.has(from) && ids.has(to)) ?? [];
  const whole: Topology = { ...rest, ...(kept.length === 0 ? {} : { pins: kept }) };
  const published =
    keepFactors && algorithmOf(whole).supports.stores === 'factors'
      ? keptFactors(topology, whole)
      : publishTopology(whole, { groupBits, before: topology });
  return withPins(published, options);
}
