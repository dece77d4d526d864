/** The ids that travel through the whole system, branded so that one is never passed for another. */
type Brand<T, Name extends string> = T & { readonly '~brand': Name };

/** A storage node: a stable small integer, 1..65 535, never used again for another node. */
export type NodeId = Brand<number, 'NodeId'>;
/** A redundancy group, 0..G−1. */
export type GroupId = Brand<number, 'GroupId'>;
/** A storage policy's number in the map, 1..65 535. */
export type PolicyId = Brand<number, 'PolicyId'>;

/** Revision of the map store: counts its writing transactions. */
export type Revision = number;
/** era · 2^40 + revision; below 2^53. Orders the configurations of a group. */
export type Ballot = number;
/** Position of an entry in its group's log; the first is 1. */
export type Sequence = number;

export const asNodeId = (value: number): NodeId => value as NodeId;
export const asGroupId = (value: number): GroupId => value as GroupId;
export const asPolicyId = (value: number): PolicyId => value as PolicyId;

/** A group under a policy: what has a log, members and a primary. */
export interface GroupKey {
  readonly policy: PolicyId;
  readonly group: GroupId;
}

/** One number for a group key, fit for a `Map`: policy · 2^32 + group. */
export function groupNumber(key: GroupKey): number {
  return key.policy * 4_294_967_296 + key.group;
}
