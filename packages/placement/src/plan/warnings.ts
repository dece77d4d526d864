import { algorithmOf } from '../algorithms.ts';
import { domainOf, placeableNodes, withoutDomains } from '../domains.ts';
import { fairShares } from '../fair-shares.ts';
import type { NodeId } from '../ids.ts';
import { weightShares } from '../moves.ts';
import type { Pin, Topology } from '../topology.ts';
import { validateTopology } from '../validate.ts';
import type { PlacementPlan, PlanWarning } from './placement-plan.ts';

/** A domain that must hold so much more than its weight says is named. */
const UNFAIR = 0.05;
/** Copies per node for which hashing alone keeps the fullest node within some 25 % of the mean. */
const FEW_COPIES_PER_NODE = 200;
const MAX_GROUP_BITS = 16;
/** Movement beyond this multiple of the least, and beyond its chance variation, is named. */
const MUCH = 1.25;
/** Of one kind of warning so many are told one by one. */
const MAX_NAMED = 8;

const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(2)} GB`;

/** The first few, and how many more there are. */
function limited(warnings: readonly PlanWarning[]): PlanWarning[] {
  if (warnings.length <= MAX_NAMED) return [...warnings];
  const [{ code }] = warnings as [PlanWarning];
  return [...warnings.slice(0, MAX_NAMED), { code, message: `… and ${warnings.length - MAX_NAMED} more like it` }];
}

function shortfallWarnings(topology: Topology): PlanWarning[] {
  const placeable = placeableNodes(topology).length;
  const { copies } = topology;
  if (placeable >= copies) return [];
  const message = `${copies} copies need as many nodes with weight, there will be ${placeable}: every group stays ${copies - placeable} short`;
  return [{ code: 'shortfall', message }];
}

/** Domains whose number forces them to hold more than their weight says; those that can hold less, `validateTopology` names. */
function domainWarnings(topology: Topology): PlanWarning[] {
  const rules = algorithmOf(topology).supports.domains ? topology : withoutDomains(topology);
  const fair = fairShares(topology);
  const shares = weightShares(topology);
  const sum = [...fair.values()].reduce((total, share) => total + share, 0);
  const byDomain = Map.groupBy(placeableNodes(rules), (node) => domainOf(rules, node));
  const kind = rules.domain ?? 'node';
  const found: (PlanWarning & { readonly excess: number })[] = [];
  for (const [domain, nodes] of byDomain) {
    const total = (of: ReadonlyMap<NodeId, number>): number =>
      nodes.reduce((all, { id }) => all + (of.get(id) ?? 0), 0);
    const weight = total(shares);
    const ofShare = total(fair) / sum / weight;
    const name = domain.startsWith('#') ? `node ${domain.slice(1)}` : `${kind} ${domain}`;
    const held = `${percent(total(fair) / sum)} of all copies with ${percent(weight)} of the weight`;
    const reason = `${topology.copies} copies over ${byDomain.size} ${kind}s`;
    if (ofShare > 1 + UNFAIR) {
      const message = `${name} must hold ${ofShare.toFixed(2)} times its share (${held}): ${reason} leave no choice`;
      found.push({ code: 'overfull-domain', message, excess: ofShare });
    }
  }
  return limited(found.sort((a, b) => b.excess - a.excess).map(({ code, message }) => ({ code, message })));
}

/**
 * Hashing spreads q copies per node with a deviation of √((1 − r/n)/q); of n nodes the fullest is √(2 ln n) of these above
 * the mean.
 */
export function expectedFullest(nodes: number, copies: number, groups: number): number {
  const perNode = (groups * copies) / nodes;
  return 1 + Math.sqrt((2 * Math.log(nodes) * Math.max(0, 1 - copies / nodes)) / perNode);
}

function groupWarnings(topology: Topology, groups: number): PlanWarning[] {
  const nodes = placeableNodes(topology).length;
  const perNode = (groups * topology.copies) / nodes;
  // a table is as even as it is made, whatever the number of groups
  if (algorithmOf(topology).supports.stores === 'table' || nodes < 2 || perNode >= FEW_COPIES_PER_NODE) return [];
  const bits = Math.ceil(Math.log2((FEW_COPIES_PER_NODE * nodes) / topology.copies));
  const advice =
    bits <= MAX_GROUP_BITS
      ? `a cluster of this size wants ${2 ** bits} groups, a number that is fixed when it is made`
      : 'let pins take the rest';
  const excess = percent(expectedFullest(nodes, topology.copies, groups) - 1);
  const message = `${groups} groups are ${Math.round(perNode)} copies a node over ${nodes} nodes: by chance alone the fullest holds some ${excess} more than its share; ${advice}`;
  return [{ code: 'few-groups', message }];
}

/** Nodes without the label that keeps copies apart: forgotten, or a slip in its name. */
function labelWarnings(topology: Topology): PlanWarning[] {
  const { domain } = topology;
  if (domain === undefined) return [];
  const nodes = placeableNodes(topology);
  const bare = nodes.filter(({ labels }) => labels[domain] === undefined);
  if (bare.length === 0) return [];
  const named = bare.length === nodes.length ? 'no node has a' : `${bare.length} of ${nodes.length} nodes have no`;
  return [{ code: 'unlabelled', message: `${named} ${domain}: each of them counts as a ${domain} of its own` }];
}

/** Why more moves than the weights ask for. */
function reasonOf(before: Topology, after: Topology): string {
  if (before.algorithm !== after.algorithm)
    return `${after.algorithm} places groups otherwise than ${before.algorithm}`;
  if (before.seed !== after.seed) return 'another seed places all groups anew';
  if (before.domain !== after.domain) return 'other domains are kept apart';
  if ((after.pins?.length ?? 0) > (before.pins?.length ?? 0)) return 'pins level what chance left uneven';
  if (JSON.stringify(before.factors) !== JSON.stringify(after.factors)) {
    return 'calibration factors made anew shift every domain, those that are kept would move less';
  }
  return `that is ${after.algorithm}'s way with this change`;
}

function movementWarnings(plan: PlacementPlan, before: Topology, after: Topology): PlanWarning[] {
  const { movement, least } = plan;
  if (movement.copies <= MUCH * least + 4 * Math.sqrt(least) || movement.copies === 0) return [];
  const than = least < 1 ? 'nothing need move' : `${Math.round(least)} copies would do`;
  const message = `${movement.copies} copies move where by weight ${than}: ${reasonOf(before, after)}`;
  return [{ code: 'much-movement', message }];
}

function roomWarnings(plan: PlacementPlan, capacities: ReadonlyMap<NodeId, number>): PlanWarning[] {
  const tight = plan.nodes.filter(
    ({ node, after }) => after !== undefined && after.bytes > (capacities.get(node) ?? Infinity),
  );
  return limited(
    tight.map(({ node, after }) => {
      const message = `node ${node} would hold ${gigabytes(after!.bytes)} and has room for ${gigabytes(capacities.get(node)!)}`;
      return { code: 'no-room', message };
    }),
  );
}

function pinWarnings(before: Topology, after: Topology): PlanWarning[] {
  const keyOf = (pin: Pin): string => `${pin.group} ${pin.from} ${pin.to}`;
  const kept = new Set((after.pins ?? []).map(keyOf));
  const lost = (before.pins ?? []).filter((pin) => !kept.has(keyOf(pin))).length;
  if (lost === 0) return [];
  const message = `${lost} of ${before.pins!.length} pins go: their nodes leave or lose their weight, or they help no more`;
  return [{ code: 'lost-pins', message }];
}

function removalWarnings(plan: PlacementPlan): PlanWarning[] {
  const gone = plan.nodes.filter(({ before, after }) => after === undefined && (before?.copies ?? 0) > 0);
  if (gone.length === 0) return [];
  const nodes = gone.map(({ node }) => node);
  const named = `${nodes.slice(0, MAX_NAMED).join(', ')}${nodes.length > MAX_NAMED ? ', …' : ''}`;
  const message = `${nodes.length === 1 ? 'node' : 'nodes'} ${named} would be removed while holding copies: drain first unless lost already, a node that left is no source`;
  return [{ code: 'removed-with-copies', message }];
}

export interface WarningInput {
  readonly before: Topology;
  readonly after: Topology;
  readonly groups: number;
  readonly capacities: ReadonlyMap<NodeId, number>;
}

/** @param plan  complete but for its warnings */
export function warningsOf(plan: PlacementPlan, { before, after, groups, capacities }: WarningInput): PlanWarning[] {
  const short = shortfallWarnings(after);
  const shape: PlanWarning[] =
    short.length > 0
      ? short
      : [
          ...limited(validateTopology(after).warnings.map((message) => ({ code: 'topology', message }) as const)),
          ...domainWarnings(after),
        ];
  return [
    ...shape,
    ...groupWarnings(after, groups),
    ...labelWarnings(after),
    ...movementWarnings(plan, before, after),
    ...roomWarnings(plan, capacities),
    ...pinWarnings(before, after),
    ...removalWarnings(plan),
  ];
}
