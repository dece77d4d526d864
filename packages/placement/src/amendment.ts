import type { NodeId } from './ids.ts';
import { decide, groupState, mixWord, SALT } from './decision-hash.ts';
import { domainOf, placeableNodes, withoutDomains } from './domains.ts';
import { logUnit } from './logarithm.ts';
import type { AlgorithmName, Topology } from './topology.ts';
import { mayReach, scoreOf, shareOf } from './wrd.ts';

/**
 * Turns a group's list by one topology into its list by the next: the very same one where nothing changes, undefined where
 * the group must be placed afresh. Lists are those before pins, of one length in both topologies.
 */
export type Amendment = (group: number, row: Uint16Array) => Uint16Array | readonly NodeId[] | undefined;

/** The algorithms whose lists are an order of scores that each node draws for itself. */
const AMENDABLE: readonly AlgorithmName[] = ['wrd', 'rendezvous'];

/** Beyond this share of changed nodes most groups would be placed afresh anyway. */
const MOST_CHANGED = 0.25;

interface Node {
  readonly id: NodeId;
  readonly mixed: number;
  readonly share: number;
  readonly domain: string;
}

interface Candidate {
  readonly node: Node;
  readonly score: number;
  /** Candidates of the same domain that come before it. */
  readonly ahead: number;
}

function nodesOf(given: Topology): Map<NodeId, Node> {
  const topology = given.algorithm === 'rendezvous' ? withoutDomains(given) : given;
  return new Map(
    placeableNodes(topology).map((node) => [
      node.id,
      { id: node.id, mixed: mixWord(node.id), share: shareOf(topology, node), domain: domainOf(topology, node) },
    ]),
  );
}

/** Whether scores of unchanged nodes, and what they compete in, are the same in both. */
function comparable(before: Topology, after: Topology): boolean {
  return (
    AMENDABLE.includes(before.algorithm) &&
    before.algorithm === after.algorithm &&
    before.version === after.version &&
    before.seed === after.seed
  );
}

/** The first `count` of the candidates as WRD orders them: all that are the best of their domain, then all second best, … */
function firstOf(candidates: readonly Node[], state: number, count: number): NodeId[] {
  const held = new Map<string, number>();
  return candidates
    .map((node) => ({ node, score: scoreOf(state, node.mixed, node.share) }))
    .sort((a, b) => b.score - a.score || a.node.id - b.node.id)
    .map((candidate): Candidate => {
      const ahead = held.get(candidate.node.domain) ?? 0;
      held.set(candidate.node.domain, ahead + 1);
      return { ...candidate, ahead };
    })
    .sort((a, b) => a.ahead - b.ahead)
    .slice(0, count)
    .map(({ node }) => node.id);
}

const LOST = 1;
const GAINED = 2;

/** What became of each node, by id: LOST, GAINED, both (it is in another domain), or 0. */
function changesBetween(old: ReadonlyMap<NodeId, Node>, next: ReadonlyMap<NodeId, Node>): Uint8Array {
  const changes = new Uint8Array(Math.max(0, ...old.keys(), ...next.keys()) + 1);
  for (const [id, { share, domain }] of old) {
    const now = next.get(id);
    if (now === undefined || now.share < share || now.domain !== domain) changes[id]! |= LOST;
  }
  for (const [id, { share, domain }] of next) {
    const then = old.get(id);
    if (then === undefined || then.share < share || then.domain !== domain) changes[id]! |= GAINED;
  }
  return changes;
}

/**
 * How lists of `before` become lists of `after`, if that is cheaper than placing every group again.
 *
 * The old scores of nodes that did not change stay valid, and a list holds all that matters of them. A node may have lost
 * (lighter, drained, gone, in another domain): lists without it know nothing of it, lists with it need a successor and are
 * placed afresh. A node may have gained (heavier, new, in another domain): the new list is the best of the old one and the
 * gainers. That is exact because the order is (rank in its domain, score): whoever stood behind a whole list still does
 * when others rise, and a list holds of each domain the best ones without a gap.
 *
 * @param count  length of the lists, at least 1
 * Cost per group: a hash and a logarithm for the list's last node and for each gainer.
 */
export function amendmentOf(before: Topology, after: Topology, count: number): Amendment | undefined {
  if (!comparable(before, after)) return undefined;
  const old = nodesOf(before);
  const next = nodesOf(after);
  const changes = changesBetween(old, next);
  const gainers = [...next.values()].filter(({ id }) => (changes[id]! & GAINED) !== 0);
  if (changes.reduce((sum, change) => sum + Math.sign(change), 0) > MOST_CHANGED * next.size) return undefined;
  // with fewer domains than copies a list's last node may owe its place to its rank, not to its score
  const ranksByScore = new Set([...old.values()].map(({ domain }) => domain)).size >= count;

  // columns: this is asked of every group
  const gainersMixed = Int32Array.from(gainers, ({ mixed }) => mixed);
  const gainersShares = Float64Array.from(gainers, ({ share }) => share);
  const someReach = (least: number, state: number): boolean => {
    for (let i = 0; i < gainersMixed.length; i++) {
      const hash = decide(state, gainersMixed[i]!, SALT.NODE);
      const share = gainersShares[i]!;
      if (mayReach(least, hash, share) && logUnit(hash) / share >= least) return true;
    }
    return false;
  };

  return (group, row) => {
    for (const id of row) if ((changes[id]! & LOST) !== 0) return undefined;
    if (gainers.length === 0) return row;
    const state = groupState(after.seed, group);
    const last = next.get(row[count - 1] as NodeId)!;
    // a gainer that is in the list comes up to its last node, be it that node itself
    if (ranksByScore && !someReach(scoreOf(state, last.mixed, last.share), state)) return row;
    const candidates = new Set([...Array.from(row, (id) => next.get(id as NodeId)!), ...gainers]);
    return firstOf([...candidates], state, count);
  };
}
