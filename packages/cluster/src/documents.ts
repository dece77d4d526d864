import { asNodeId, messageOf, type NodeId, type PolicyId, WebdfsError } from '@webdfs/base';
import type { Topology } from '@webdfs/placement';
import type {
  ClusterMap,
  ControllerInfo,
  DiskInfo,
  DownInfo,
  FencedNode,
  LiveInfo,
  MoveLimits,
  NodeInfo,
  Override,
  Policy,
  ProcessMark,
} from './map.ts';

/** The values of the map store are written by other programs: each is checked here before it is believed. */

type Fields = Readonly<Record<string, unknown>>;

const MAX_MEMBERS = 64;
const MAX_POLICIES = 64;
const MAX_GROUP_BITS = 24;
const MAX_ERA = 4_095;

function refuse(key: string, what: string): never {
  throw new WebdfsError('CORRUPT', `map store: ${key}: ${what}`, { details: { key } });
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldsOf(key: string, text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    refuse(key, `not JSON: ${messageOf(error)}`);
  }
  return isFields(value) ? value : refuse(key, 'not an object');
}

function integer(key: string, value: unknown, what: string, least: number, most: number): number {
  if (!Number.isSafeInteger(value) || (value as number) < least || (value as number) > most) {
    refuse(key, `${what} is ${JSON.stringify(value)}, not an integer of ${least} to ${most}`);
  }
  return value as number;
}

function text(key: string, value: unknown, what: string): string {
  return typeof value === 'string' ? value : refuse(key, `${what} is not text`);
}

function list(key: string, value: unknown, what: string, most: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length > most) refuse(key, `${what} is not a list of at most ${most}`);
  return value as readonly unknown[];
}

const revision = (key: string, value: unknown, what: string): number =>
  integer(key, value, what, 0, Number.MAX_SAFE_INTEGER);

function nodeList(key: string, value: unknown, what: string, most: number): NodeId[] {
  const nodes = list(key, value, what, most).map((node) => asNodeId(integer(key, node, what, 1, 65_535)));
  if (new Set(nodes).size !== nodes.length) refuse(key, `${what} names a node twice`);
  return nodes;
}

function labelsOf(key: string, value: unknown): Record<string, string> {
  if (!isFields(value)) refuse(key, 'labels are not an object');
  return Object.fromEntries(Object.entries(value).map(([name, label]) => [name, text(key, label, `label ${name}`)]));
}

function policyOf(key: string, value: unknown): Policy {
  if (!isFields(value)) refuse(key, 'a policy is not an object');
  const copies = integer(key, value['copies'], 'copies', 1, 32);
  return {
    id: integer(key, value['id'], 'a policy id', 1, 65_535) as PolicyId,
    name: text(key, value['name'], 'the name of a policy'),
    copies,
    minCopies: integer(key, value['minCopies'], 'minCopies', 1, copies),
    minCopiesSince: revision(key, value['minCopiesSince'], 'minCopiesSince'),
    ...(value['next'] === undefined ? {} : { next: nextNumbersOf(key, value['next']) }),
  };
}

function nextNumbersOf(key: string, value: unknown): NonNullable<Policy['next']> {
  if (!isFields(value)) refuse(key, 'next is not an object');
  const copies = integer(key, value['copies'], 'next: copies', 1, 32);
  return {
    copies,
    minCopies: integer(key, value['minCopies'], 'next: minCopies', 1, copies),
    before: integer(key, value['before'], 'next: before', 1, 32),
  };
}

function topologyOf(key: string, value: unknown, what: string): Topology {
  if (!isFields(value)) refuse(key, `${what} is not an object`);
  text(key, value['algorithm'], `${what}: algorithm`);
  for (const subcluster of list(key, value['subclusters'], `${what}: sub-clusters`, 65_535)) {
    if (!isFields(subcluster)) refuse(key, `${what}: a sub-cluster is not an object`);
    for (const node of list(key, subcluster['nodes'], `${what}: nodes`, 65_535)) {
      if (!isFields(node)) refuse(key, `${what}: a node is not an object`);
      integer(key, node['id'], `${what}: a node id`, 1, 65_535);
      integer(key, node['weight'], `${what}: a weight`, 0, 0xffff_ffff);
    }
  }
  return value as unknown as Topology;
}

/** Less would take for ever; more nobody has. */
export const LEAST_MOVE_BYTES = 65_536;
export const MOST_MOVE_BYTES = 2 ** 50;
export const LEAST_MOVE_SHARE = 0.01;

/** @throws CORRUPT */
function moveLimitsOf(key: string, value: unknown): MoveLimits {
  if (!isFields(value)) refuse(key, 'moveLimits is not an object');
  const { bytesPerSecond, share } = value;
  if (share !== undefined && !(typeof share === 'number' && share >= LEAST_MOVE_SHARE && share <= 1)) {
    refuse(key, `a share of ${JSON.stringify(share)}, not a number of ${LEAST_MOVE_SHARE} to 1`);
  }
  const what = 'moveLimits: bytesPerSecond';
  return {
    ...(bytesPerSecond === undefined
      ? {}
      : { bytesPerSecond: integer(key, bytesPerSecond, what, LEAST_MOVE_BYTES, MOST_MOVE_BYTES) }),
    ...(share === undefined ? {} : { share }),
  };
}

function originOf(key: string, value: unknown): NonNullable<ClusterMap['importedFrom']> {
  if (!isFields(value)) refuse(key, 'importedFrom is not an object');
  return {
    era: integer(key, value['era'], 'importedFrom', 0, MAX_ERA),
    revision: revision(key, value['revision'], 'importedFrom'),
  };
}

/** Of `outAfterMs`: ten years. */
export const MOST_OUT_AFTER_MS = 315_360_000_000;

/** @throws WebdfsError CORRUPT if a value is not what its key promises; here as in all of this file */
export function parseClusterMap(key: string, value: string): ClusterMap {
  const fields = fieldsOf(key, value);
  const cluster = text(key, fields['cluster'], 'cluster');
  if (!/^[0-9a-f]{32}$/.test(cluster)) refuse(key, 'cluster is not 32 hex digits');
  const policies = list(key, fields['policies'], 'policies', MAX_POLICIES).map((policy) => policyOf(key, policy));
  if (new Set(policies.map(({ id }) => id)).size !== policies.length) refuse(key, 'two policies have one id');
  return {
    cluster,
    name: text(key, fields['name'], 'name'),
    era: integer(key, fields['era'], 'era', 0, MAX_ERA),
    groupBits: integer(key, fields['groupBits'], 'groupBits', 0, MAX_GROUP_BITS),
    policies,
    settled: topologyOf(key, fields['settled'], 'settled'),
    ...(fields['target'] === undefined ? {} : { target: topologyOf(key, fields['target'], 'target') }),
    out: nodeList(key, fields['out'], 'out', 65_535),
    ...(fields['paused'] === true ? { paused: true } : {}),
    ...(fields['moveLimits'] === undefined ? {} : { moveLimits: moveLimitsOf(key, fields['moveLimits']) }),
    ...(fields['outAfterMs'] === undefined
      ? {}
      : { outAfterMs: integer(key, fields['outAfterMs'], 'outAfterMs', 0, MOST_OUT_AFTER_MS) }),
    ...(fields['secret'] === undefined ? {} : { secret: text(key, fields['secret'], 'secret') }),
    ...(fields['importedFrom'] === undefined ? {} : { importedFrom: originOf(key, fields['importedFrom']) }),
  };
}

export function parseNodeInfo(key: string, value: string): NodeInfo {
  const fields = fieldsOf(key, value);
  return {
    address: text(key, fields['address'], 'address'),
    labels: labelsOf(key, fields['labels']),
    life: revision(key, fields['life'], 'life'),
  };
}

export function parseDiskInfo(key: string, value: string): DiskInfo {
  const fields = fieldsOf(key, value);
  return { id: text(key, fields['id'], 'id'), founding: fields['founding'] === true };
}

function processOf(key: string, value: unknown): ProcessMark {
  if (!isFields(value)) refuse(key, 'process is not an object');
  return {
    pid: integer(key, value['pid'], 'pid', 1, 2 ** 31),
    start: text(key, value['start'], 'start'),
    boot: text(key, value['boot'], 'boot'),
  };
}

export function parseLiveInfo(key: string, value: string): LiveInfo {
  const fields = fieldsOf(key, value);
  return {
    pid: integer(key, fields['pid'], 'pid', 1, 2 ** 31),
    startedMs: revision(key, fields['startedMs'], 'startedMs'),
    ...(fields['door'] === undefined ? {} : { door: text(key, fields['door'], 'door') }),
    ...(fields['process'] === undefined ? {} : { process: processOf(key, fields['process']) }),
  };
}

/** Earlier marks that a mark lists at most. */
export const MAX_EARLIER_MARKS = 16;

export function parseDownInfo(key: string, value: string): DownInfo {
  const fields = fieldsOf(key, value);
  const earlier = list(key, fields['earlier'] ?? [], 'earlier', MAX_EARLIER_MARKS).map((mark) =>
    revision(key, mark, 'an earlier mark'),
  );
  if (earlier.some((mark, i) => i > 0 && mark <= earlier[i - 1]!)) refuse(key, 'earlier marks do not ascend');
  return {
    reason: text(key, fields['reason'], 'reason'),
    session: revision(key, fields['session'], 'session'),
    ...(earlier.length === 0 ? {} : { earlier }),
    ...(fields['forgets'] === undefined ? {} : { forgets: revision(key, fields['forgets'], 'forgets') }),
  };
}

export function parseControllerInfo(key: string, value: string): ControllerInfo {
  const fields = fieldsOf(key, value);
  return {
    node: asNodeId(integer(key, fields['node'], 'node', 1, 65_535)),
    session: revision(key, fields['session'], 'session'),
  };
}

export function parseOverride(key: string, value: string): Override {
  const fields = fieldsOf(key, value);
  const members = nodeList(key, fields['members'], 'members', MAX_MEMBERS);
  if (members.length === 0) refuse(key, 'an override without members');
  const from = list(key, fields['from'], 'from', MAX_MEMBERS).map((fenced): FencedNode => {
    if (!isFields(fenced)) refuse(key, 'from names something else than nodes');
    return {
      node: asNodeId(integer(key, fenced['node'], 'from', 1, 65_535)),
      session: revision(key, fenced['session'], 'from'),
    };
  });
  return { members, eligible: nodeList(key, fields['eligible'], 'eligible', MAX_MEMBERS), from };
}

/** A value as it is stored. */
export function formatDocument(
  document: ClusterMap | NodeInfo | DiskInfo | LiveInfo | DownInfo | ControllerInfo | Override,
): string {
  return JSON.stringify(document);
}
