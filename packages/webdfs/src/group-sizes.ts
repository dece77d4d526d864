import { codeOf, type GroupId, type NodeId, type PolicyId } from '@webdfs/base';
import { decodeGroupSizes, encodeGroupSizesRequest, type GroupRange, MAX_SIZED_GROUPS, VERB } from '@webdfs/replica';
import type { ClusterAccess } from './cluster-access.ts';

/** Bytes of one copy of each group. */
export interface GroupSizes {
  bytesOf(policy: PolicyId, group: GroupId): number;
  /** All of one policy, by the groups' numbers. */
  ofPolicy(policy: PolicyId): Float64Array;
}

type Access = Pick<ClusterAccess, 'map' | 'link' | 'clock'>;

const CALL_MS = 5_000;
/** What was asked is believed for so long. */
const FRESH_MS = 5_000;

const ASKED = new WeakMap<ClusterAccess['map'], { readonly at: number; readonly sizes: Promise<GroupSizes> }>();

/** What the primaries say. Of a group that nobody serves now, or whose primary does not answer, it is 0. */
export async function groupSizes(access: Access): Promise<GroupSizes> {
  const at = access.clock.monotonic();
  let asked = ASKED.get(access.map);
  if (asked === undefined || at > asked.at + FRESH_MS) {
    asked = { at, sizes: askAll(access) };
    ASKED.set(access.map, asked);
  }
  return await asked.sizes;
}

async function askAll(access: Access): Promise<GroupSizes> {
  const { view } = access.map;
  const groups = 2 ** view.map.groupBits;
  const tables = new Map(view.map.policies.map(({ id }) => [id, new Float64Array(groups)]));
  const ranges: GroupRange[] = [];
  for (const policy of tables.keys()) {
    for (let first = 0; first < groups; first += MAX_SIZED_GROUPS) {
      ranges.push({ policy, first, count: Math.min(MAX_SIZED_GROUPS, groups - first) });
    }
  }
  const live = view.nodes().filter((node) => view.live(node) !== undefined);
  await Promise.all(
    live.map(async (node) => {
      for (const range of ranges) await askNode(access, node, { range, table: tables.get(range.policy)! });
    }),
  );
  const none = new Float64Array(groups);
  return {
    bytesOf: (policy, group) => tables.get(policy)?.[group] ?? 0,
    ofPolicy: (policy) => tables.get(policy) ?? none,
  };
}

async function askNode(
  { link }: Access,
  node: NodeId,
  { range, table }: { readonly range: GroupRange; readonly table: Float64Array },
): Promise<void> {
  try {
    const message = encodeGroupSizesRequest(range);
    const answer = await link(node).call(VERB.GROUP_SIZES, message, { deadlineMs: CALL_MS });
    decodeGroupSizes(answer, range, (group, bytes) => {
      table[group] = bytes;
    });
  } catch (error) {
    // a node that does not answer is lost, or of an earlier version: the figures are estimates then
    if (codeOf(error) === undefined) throw error;
  }
}
