import { asGroupId, asNodeId, asPolicyId, type GroupId, type GroupKey, type NodeId, type PolicyId } from '@webdfs/base';

/** Groups that share one slice key: what one sweep rewrites. */
export const SLICE_GROUPS = 64;

export const MAP_KEY = 'map';
export const CONTROLLER_KEY = 'controller';
/** What a cluster that is being made will be; gone once it is. */
export const FOUNDING_KEY = 'founding';
/** There once the map was taken to another store: nothing goes on here. */
export const FROZEN_KEY = 'frozen';
/** Prefix of the data folders that ask for a place in the cluster. */
export const JOIN_PREFIX = 'join/';
/** Prefix of the accounts of what was done to the shape of the cluster. */
export const RESCALE_PREFIX = 'rescale/';
/** Prefix of all marks. */
export const DOWN_PREFIX = 'down/';
/** Prefix of all overrides. */
export const GROUP_PREFIX = 'group/';

export const joinKey = (storeId: string): string => `join/${storeId}`;
export const rescaleKey = (number: number): string => `rescale/${number}`;
export const nodeKey = (node: NodeId): string => `node/${node}`;
export const diskKey = (node: NodeId): string => `disk/${node}`;
export const liveKey = (node: NodeId): string => `live/${node}`;
export const downKey = (node: NodeId): string => `down/${node}`;
export const groupKey = (key: GroupKey): string => `group/${key.policy}/${key.group}`;
export const sliceKey = (policy: PolicyId, slice: number): string => `slice/${policy}/${slice}`;

/** The slice that a group belongs to. */
export function sliceOf(group: GroupId): number {
  return Math.floor(group / SLICE_GROUPS);
}

/** How many slices a policy has. */
export function sliceCount(groupBits: number): number {
  return Math.ceil(2 ** groupBits / SLICE_GROUPS);
}

/** What a key of the map store is about. */
export type ParsedKey =
  | { readonly type: 'map' }
  | { readonly type: 'controller' }
  | { readonly type: 'node' | 'disk' | 'live' | 'down'; readonly node: NodeId }
  | { readonly type: 'group'; readonly group: GroupKey }
  | { readonly type: 'slice'; readonly policy: PolicyId; readonly slice: number };

const NODE_KEY = /^(node|disk|live|down)\/([1-9]\d{0,4})$/;
const GROUP_KEY = /^group\/([1-9]\d{0,4})\/(0|[1-9]\d{0,7})$/;
const SLICE_KEY = /^slice\/([1-9]\d{0,4})\/(0|[1-9]\d{0,7})$/;
const MAX_ID = 65_535;

/** Undefined for a key that this program does not know: another program's, or a later version's. */
export function parseKey(key: string): ParsedKey | undefined {
  if (key === MAP_KEY) return { type: 'map' };
  if (key === CONTROLLER_KEY) return { type: 'controller' };
  const ofNode = NODE_KEY.exec(key);
  if (ofNode !== null) {
    const node = Number(ofNode[2]);
    return node > MAX_ID ? undefined : { type: ofNode[1] as 'node', node: asNodeId(node) };
  }
  const ofGroup = GROUP_KEY.exec(key);
  if (ofGroup !== null) {
    const policy = Number(ofGroup[1]);
    if (policy > MAX_ID) return undefined;
    return { type: 'group', group: { policy: asPolicyId(policy), group: asGroupId(Number(ofGroup[2])) } };
  }
  const ofSlice = SLICE_KEY.exec(key);
  if (ofSlice === null || Number(ofSlice[1]) > MAX_ID) return undefined;
  return { type: 'slice', policy: asPolicyId(Number(ofSlice[1])), slice: Number(ofSlice[2]) };
}
