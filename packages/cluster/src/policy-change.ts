import { WebdfsError } from '@webdfs/base';
import { DOWN_PREFIX, GROUP_PREFIX } from './keys.ts';
import type { ClusterMap, Policy } from './map.ts';
import type { Compare } from './map-store.ts';
import type { MapView } from './view.ts';

/**
 * Another number of copies in a running cluster. The default membership of a group follows from the policy's `copies`, so that
 * the number may only change when no group depends on it: with the target, once every group stands at its goal.
 *
 * - Until then `next` says what it becomes. Goals have `next.copies` members; a group is whole with the smaller of both numbers.
 * - `minCopies` is lowered at once (groups that lost a copy already can go on being written) and raised when it is settled
 *   (every group has its copies then).
 */

/** How many copies a policy is to keep, and how many must have what is acknowledged. */
export interface PolicyNumbers {
  readonly copies: number;
  readonly minCopies: number;
}

/** Members that a group must not fall below by a planned step: while the number changes, the smaller one. */
export function promisedCopies({ copies, next }: Policy): number {
  return Math.min(copies, next?.copies ?? copies);
}

/** Members that a group is to have. */
export function wantedCopies({ copies, next }: Policy): number {
  return next?.copies ?? copies;
}

/** The most that any policy needs, now or soon. */
export function mostCopies(policies: readonly Policy[]): number {
  return Math.max(...policies.map((policy) => Math.max(policy.copies, wantedCopies(policy))));
}

/** 2 of 3 and the like: what a policy has where nothing else is said. */
export function usualMinCopies(copies: number): number {
  return copies - Math.floor(copies / 2);
}

/** @throws INVALID */
function check({ copies, minCopies }: PolicyNumbers): void {
  if (!Number.isInteger(copies) || copies < 1 || copies > 32) {
    throw new WebdfsError('INVALID', `${copies} copies: 1 to 32 make sense`);
  }
  if (!Number.isInteger(minCopies) || minCopies < 1 || minCopies > copies) {
    throw new WebdfsError('INVALID', `minCopies ${minCopies}: 1 to ${copies} make sense with ${copies} copies`);
  }
}

/** Nobody left, came back with another disk or was configured since the map that was seen: that dates `minCopies`. */
function nothingSince({ revision }: MapView): Compare[] {
  return [DOWN_PREFIX, GROUP_PREFIX, 'disk/', 'slice/'].map((prefix) => ({
    type: 'range',
    prefix,
    notAfter: revision,
  }));
}

/** The numbers are to become others, with a target. @throws INVALID for numbers that make no sense */
export function policyTowards(
  view: MapView,
  policy: Policy,
  wanted: PolicyNumbers,
): { readonly policy: Policy; readonly compare: readonly Compare[] } {
  check(wanted);
  const { next: _, ...rest } = policy;
  const { copies, minCopies } = wanted;
  const isLowered = minCopies < rest.minCopies;
  const now: Policy = isLowered ? { ...rest, minCopies, minCopiesSince: view.revision } : rest;
  const before = policy.next?.before ?? policy.minCopies;
  const isReached = now.copies === copies && now.minCopies === minCopies;
  return {
    policy: isReached ? now : { ...now, next: { copies, minCopies, before } },
    compare: isLowered ? nothingSince(view) : [],
  };
}

/** The numbers become those that they were to become. */
export function settledPolicies(view: MapView): { readonly policies: readonly Policy[]; readonly compare: Compare[] } {
  const { policies } = view.map;
  const raises = policies.some(({ next, minCopies }) => next !== undefined && next.minCopies !== minCopies);
  return {
    policies: policies.map((policy) => settledPolicy(view, policy)),
    compare: raises ? nothingSince(view) : [],
  };
}

function settledPolicy(view: MapView, { next, ...policy }: Policy): Policy {
  if (next === undefined) return policy;
  const { copies, minCopies } = next;
  const name = policy.name === `replicas=${policy.copies}` ? `replicas=${copies}` : policy.name;
  const since = minCopies === policy.minCopies ? policy.minCopiesSince : view.revision;
  return { ...policy, name, copies, minCopies, minCopiesSince: since };
}

/**
 * The map without its target: numbers that were to change stay. A `minCopies` that was lowered is raised again when all groups
 * are back, so that then there is still a target: the settled topology.
 */
export function withoutTarget(before: ClusterMap): ClusterMap {
  const { target: _, ...map } = before;
  const policies = map.policies.map(({ next, ...policy }): Policy => {
    if (next === undefined || next.before === policy.minCopies) return policy;
    return { ...policy, next: { copies: policy.copies, minCopies: next.before, before: next.before } };
  });
  const isBack = policies.every(({ next }) => next === undefined);
  return { ...map, policies, ...(isBack ? {} : { target: map.settled }) };
}
