import type { NodeId } from './ids.ts';
import { checkNesting, domainOf, domainWeights, OWN_DOMAIN, placeableNodes, withoutDomains } from './domains.ts';
import { fairShares } from './fair-shares.ts';
import { pinBoard } from './pins.ts';
import { type Demands, refusals } from './refusals.ts';
import { algorithmOf } from './algorithms.ts';
import { ALGORITHMS, type Topology, type TopologyNode } from './topology.ts';

/** What is wrong with a topology. Errors forbid its use; warnings tell what it will not do as one may expect. */
export interface TopologyFindings {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** A weight of 65 535 units of 1 TiB, say; keeps every product of a placement below 2^53. */
const MAX_WEIGHT = 0xffff_ffff;
/** 16: keeps weight · factor below 2^53. */
const MAX_FACTOR = 1 << 20;
const MAX_COPIES = 32;
const MAX_NODES = 65_535;
/** A node or a domain whose weight is not honoured by more than this share is named in a warning. */
const UNEVEN = 0.01;

function isInteger(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

function checkHead(topology: Topology): string[] {
  const errors: string[] = [];
  if (!ALGORITHMS.includes(topology.algorithm) || topology.version !== 1) {
    errors.push(`unknown placement algorithm ${topology.algorithm} version ${topology.version}`);
  }
  if (!isInteger(topology.seed, 0, 0xffff_ffff))
    errors.push(`the seed is ${topology.seed}, not an unsigned 32-bit number`);
  if (!isInteger(topology.copies, 1, MAX_COPIES))
    errors.push(`copies are ${topology.copies}, allowed are 1 to ${MAX_COPIES}`);
  if (topology.domain !== undefined && !['zone', 'rack', 'machine'].includes(topology.domain)) {
    errors.push(`unknown domain label ${topology.domain}`);
  }
  return errors;
}

function checkNode(node: TopologyNode): string[] {
  const errors: string[] = [];
  if (!isInteger(node.id, 1, MAX_NODES)) errors.push(`node id ${node.id} is not 1 to ${MAX_NODES}`);
  if (!isInteger(node.weight, 0, MAX_WEIGHT)) {
    errors.push(`node ${node.id} has weight ${node.weight}, not an integer in 16.16 fixed point`);
  }
  for (const [label, value] of Object.entries(node.labels)) {
    if (typeof value !== 'string' || value === '' || value.startsWith(OWN_DOMAIN)) {
      errors.push(`node ${node.id} has ${label} "${value}": labels are not empty and do not begin with ${OWN_DOMAIN}`);
    }
  }
  return errors;
}

function checkNodes(topology: Topology): string[] {
  const errors: string[] = [];
  const nodeIds = new Set<number>();
  const subclusterIds = new Set<number>();
  for (const subcluster of topology.subclusters) {
    if (!isInteger(subcluster.id, 0, 0xffff_ffff))
      errors.push(`sub-cluster id ${subcluster.id} is not an unsigned 32-bit number`);
    if (subclusterIds.has(subcluster.id)) errors.push(`sub-cluster ${subcluster.id} is listed twice`);
    subclusterIds.add(subcluster.id);
    if (subcluster.nodes.length === 0) errors.push(`sub-cluster ${subcluster.id} has no nodes`);
    for (const node of subcluster.nodes) {
      errors.push(...checkNode(node));
      if (nodeIds.has(node.id)) errors.push(`node ${node.id} is listed twice`);
      nodeIds.add(node.id);
    }
  }
  return errors;
}

function checkExtras(topology: Topology): string[] {
  const errors: string[] = [];
  for (const [domain, factor] of Object.entries(topology.factors ?? {})) {
    if (!isInteger(factor, 1, MAX_FACTOR))
      errors.push(`domain ${domain} has factor ${factor}, allowed are 1 to ${MAX_FACTOR}`);
  }
  const ids = new Set(topology.subclusters.flatMap((subcluster) => subcluster.nodes.map((node): number => node.id)));
  const seen = new Set<string>();
  for (const pin of topology.pins ?? []) {
    const name = `pin of group ${pin.group} from ${pin.from} to ${pin.to}`;
    if (!isInteger(pin.group, 0, 2 ** 24 - 1)) errors.push(`${name}: no such group`);
    if (!ids.has(pin.from) || !ids.has(pin.to)) errors.push(`${name}: names an unknown node`);
    if (pin.from === pin.to) errors.push(`${name}: goes nowhere`);
    if (seen.has(`${pin.group} ${pin.from}`)) errors.push(`${name}: that node of that group has a pin already`);
    seen.add(`${pin.group} ${pin.from}`);
  }
  return errors;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function domainWarnings(topology: Topology): string[] {
  const { copies } = topology;
  const kind = topology.domain ?? 'node';
  const weights = domainWeights(topology);
  const warnings: string[] = [];
  if (!algorithmOf(topology).supports.domains) {
    if (topology.domain !== undefined) warnings.push(`${topology.algorithm} does not keep copies apart by ${kind}`);
    return warnings;
  }
  if (weights.size < copies) {
    warnings.push(
      `${copies} copies over ${weights.size} domains (${kind}): some domains hold several copies of a group`,
    );
  }
  const held = new Map<string, number>();
  const shares = fairShares(topology);
  for (const node of placeableNodes(topology)) {
    const domain = domainOf(topology, node);
    held.set(domain, (held.get(domain) ?? 0) + shares.get(node.id)!);
  }
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
  for (const [domain, weight] of weights) {
    const most = held.get(domain)! / copies;
    if (most < (1 - UNEVEN) * (weight / total)) {
      warnings.push(
        `${kind} ${domain} has ${percent(weight / total)} of the weight and can hold at most ${percent(most)} of the copies: ` +
          `its nodes will stand emptier than their weight says`,
      );
    }
  }
  return warnings;
}

function unevenWarnings(topology: Topology): string[] {
  if (algorithmOf(topology).supports.unevenSubclusters) return [];
  return topology.subclusters.flatMap((subcluster) => {
    const live = subcluster.nodes.filter((node) => node.weight > 0);
    const mean = live.reduce((sum, node) => sum + node.weight, 0) / live.length;
    const uneven = live.filter((node) => Math.abs(node.weight / mean - 1) > UNEVEN);
    if (uneven.length === 0) return [];
    return [`sub-cluster ${subcluster.id} has nodes of unlike weight: ${topology.algorithm} honours them only roughly`];
  });
}

/** Pins that change nothing, and factors of domains that do not exist. */
function uselessWarnings(topology: Topology): string[] {
  const warnings: string[] = [];
  const algorithm = algorithmOf(topology);
  const rules = algorithm.supports.domains ? topology : withoutDomains(topology);
  const domains = new Set(
    topology.subclusters.flatMap((subcluster) => subcluster.nodes.map((node) => domainOf(rules, node))),
  );
  for (const domain of Object.keys(topology.factors ?? {})) {
    if (!domains.has(domain)) warnings.push(`there is a calibration factor for ${domain}, which no node has`);
  }
  const board = pinBoard(topology, algorithm.supports.domains);
  const place = algorithm.prepare(topology);
  for (const group of new Set((topology.pins ?? []).map((pin) => pin.group))) {
    const judged: NodeId[] = place(group, topology.copies);
    for (const pin of board.apply(group, judged, judged)) {
      warnings.push(`pin of group ${pin.group} from ${pin.from} to ${pin.to} does not apply and is ignored`);
    }
  }
  return warnings;
}

/**
 * Checks a topology before it becomes part of a map: everything that placement takes for granted, what its algorithm does
 * not support, and what an operator should know before choosing it.
 *
 * @param demands  what the store asks of an algorithm beyond that
 */
export function validateTopology(topology: Topology, demands: Demands = {}): TopologyFindings {
  const errors = [...checkHead(topology), ...checkNodes(topology), ...checkNesting(topology), ...checkExtras(topology)];
  if (errors.length > 0) return { errors, warnings: [] };
  const placeable = placeableNodes(topology).length;
  if (placeable < topology.copies) {
    return {
      errors: [`${topology.copies} copies need as many nodes with weight, there are ${placeable}`],
      warnings: [],
    };
  }
  const refused = refusals(topology, demands);
  if (refused.length > 0) return { errors: refused, warnings: [] };
  return {
    errors,
    warnings: [...domainWarnings(topology), ...unevenWarnings(topology), ...uselessWarnings(topology)],
  };
}
