import { assert, type Ballot, type GroupKey, type NodeId, type Revision } from '@webdfs/base';
import { sliceOf } from './keys.ts';
import type { FencedNode, GroupHealth, GroupView, Override, Policy } from './map.ts';
import { promisedCopies } from './policy-change.ts';
import type { MapView } from './view.ts';

/** What `derive` must know of the map. */
export type MapFacts = Pick<
  MapView,
  'map' | 'policy' | 'disk' | 'live' | 'down' | 'override' | 'sliceRevision' | 'placed' | 'goal'
>;

/** A configuration: who is to hold a group, and since when. */
interface Configuration {
  readonly value: Override;
  readonly revision: Revision;
  readonly overridden: boolean;
}

const NEVER = Number.POSITIVE_INFINITY;
const ERA_SPAN = 2 ** 40;

/** era · 2^40 + revision, the order of configurations. */
export function ballotOf(era: number, revision: Revision): Ballot {
  assert(revision > 0, 'a configuration has a revision');
  assert(revision < ERA_SPAN, 'revisions stay below 2^40');
  return era * ERA_SPAN + revision;
}

/** The revision in a ballot: what a node that does not know the ballot must read the map through to. */
export function revisionOf(ballot: Ballot): Revision {
  return ballot % ERA_SPAN;
}

function configurationOf(facts: MapFacts, key: GroupKey): Configuration {
  const override = facts.override(key);
  if (override !== undefined) return { ...override, overridden: true };
  return {
    value: { members: facts.placed(key), eligible: [], from: [] },
    revision: facts.sliceRevision(key.policy, sliceOf(key.group)),
    overridden: false,
  };
}

/** Since when a node's present disk cannot hold what was there before; 0 for the disk it was founded with. */
function diskRevision(facts: MapFacts, node: NodeId): Revision {
  const disk = facts.disk(node);
  return disk === undefined || disk.founding ? 0 : disk.revision;
}

/** The first of a node's marks after `since`. */
function markAfter(facts: MapFacts, node: NodeId, since: Revision): Revision {
  const down = facts.down(node);
  if (down === undefined) return NEVER;
  for (const mark of down.info.earlier ?? []) if (mark > since) return mark;
  return down.mark > since ? down.mark : NEVER;
}

/** When a member left: the smaller of its mark and its disk's revision, of those newer than the configuration. */
function leftAt(facts: MapFacts, node: NodeId, config: Revision): Revision {
  const disk = diskRevision(facts, node);
  return Math.min(markAfter(facts, node, config), disk > config ? disk : NEVER);
}

/**
 * Members that provably hold everything acknowledged though they left: from their leaving on fewer than `minCopies`
 * members were in sync, so nothing can have been acknowledged. Only with the disk they had, and only by the `minCopies`
 * that held then.
 */
function eligibleOf(facts: MapFacts, config: Configuration, policy: Policy, left: readonly Revision[]): NodeId[] {
  const { members, eligible: listed } = config.value;
  const sameDisk = (node: NodeId): boolean => diskRevision(facts, node) <= config.revision;
  const heldAll = (node: NodeId, at: Revision): boolean => {
    if (at === NEVER || at <= policy.minCopiesSince) return false;
    if (config.revision < (facts.down(node)?.info.forgets ?? 0)) return false;
    return left.filter((other) => other > at).length < policy.minCopies;
  };
  const result = members.filter((node, i) => heldAll(node, left[i]!) && sameDisk(node));
  const inSync = left.filter((at) => at === NEVER).length;
  if (inSync >= policy.minCopies || config.revision <= policy.minCopiesSince) return result;
  return [...result, ...listed.filter((node) => sameDisk(node) && !members.includes(node))];
}

/** Nodes that may still believe they are primary, as long as `live` shows the session they had then. */
function fenceOf(facts: MapFacts, config: Configuration, left: readonly Revision[]): FencedNode[] {
  const fence: FencedNode[] = [];
  const add = (fenced: FencedNode): void => {
    if (fenced.session === 0 || facts.live(fenced.node)?.session !== fenced.session) return;
    if (!fence.some(({ node }) => node === fenced.node)) fence.push(fenced);
  };
  for (const fenced of config.value.from) add(fenced);
  for (const [i, node] of config.value.members.entries()) {
    const down = facts.down(node);
    if (left[i] !== NEVER && down !== undefined) add({ node, session: down.info.session });
  }
  return fence;
}

function healthOf(inSync: number, eligible: number, policy: Policy): GroupHealth {
  if (inSync >= promisedCopies(policy)) return 'whole';
  if (inSync >= policy.minCopies) return 'degraded';
  if (inSync > 0) return 'reads-only';
  return eligible > 0 ? 'waiting' : 'lost';
}

/**
 * Everything about a group that follows from the map: who is in sync, who is primary, under which ballot. Pure, and the
 * same everywhere; no message ever says who is primary.
 *
 * Between any two states of a map that only `propose` and its companions changed, the ballot never goes back, and equal
 * ballots mean equal members in sync, primary and session.
 *
 * @throws WebdfsError NOT_FOUND if the map has no such policy
 * Source: docs/internals/cluster.md; the configuration manager of PacificA (MSR-TR-2008-25) and the eligible leader
 * replicas of Kafka's KIP-966.
 */
export function derive(facts: MapFacts, key: GroupKey): GroupView {
  const policy = facts.policy(key.policy);
  const config = configurationOf(facts, key);
  const { members } = config.value;
  const left = members.map((node) => leftAt(facts, node, config.revision));
  const inSync = members.filter((_, i) => left[i] === NEVER);
  const eligible = eligibleOf(facts, config, policy, left);

  const first = inSync[0];
  const session = (first === undefined ? undefined : facts.live(first)?.session) ?? 0;
  const newest = Math.max(config.revision, session, ...left.filter((at) => at !== NEVER));
  return {
    ballot: session === 0 ? 0 : ballotOf(facts.map.era, newest),
    inSync: inSync.length === members.length ? members : inSync,
    members,
    primary: session === 0 ? undefined : first,
    session,
    configRevision: config.revision,
    overridden: config.overridden,
    eligible,
    fence: fenceOf(facts, config, left),
    goal: facts.goal(key),
    copies: promisedCopies(policy),
    minCopies: policy.minCopies,
    health: healthOf(inSync.length, eligible.length, policy),
  };
}
