import { asGroupId, codeOf, type GroupId, type NodeId, type PolicyId } from '@webdfs/base';
import { allGroups } from '@webdfs/cluster';
import { decodeGroupSizes, encodeGroupSizesRequest, type GroupRange, MAX_SIZED_GROUPS, VERB } from '@webdfs/replica';
import type { ClusterAccess } from './cluster-access.ts';

/** Bytes of one copy of each group. */
export interface GroupSizes {
  bytesOf(policy: PolicyId, group: GroupId): number;
  /** All of one policy, by the groups' numbers. */
  ofPolicy(policy: PolicyId): Float64Array;
  /** The primary of every group has answered; else some are as they were when they were last asked, or 0. */
  readonly isWhole: boolean;
}

type Access = Pick<ClusterAccess, 'map' | 'link' | 'clock'>;

const CALL_MS = 5_000;
/** What was asked is believed for so long. */
const FRESH_MS = 5_000;

const ASKED = new WeakMap<ClusterAccess['map'], { readonly at: number; readonly sizes: Promise<GroupSizes> }>();

/** What the primaries say. Of a group that has none now, or whose primary does not answer, it is what was heard last. */
export async function groupSizes(access: Access): Promise<GroupSizes> {
  const at = access.clock.monotonic();
  let asked = ASKED.get(access.map);
  if (asked === undefined || at > asked.at + FRESH_MS) {
    asked = { at, sizes: askAll(access, asked?.sizes) };
    ASKED.set(access.map, asked);
  }
  return await asked.sizes;
}

async function askAll(access: Access, last: Promise<GroupSizes> | undefined): Promise<GroupSizes> {
  const before = await last?.catch(() => undefined);
  const { view } = access.map;
  const groups = 2 ** view.map.groupBits;
  const tables = new Map(
    view.map.policies.map(({ id }) => [id, before?.ofPolicy(id).slice() ?? new Float64Array(groups)]),
  );
  const ranges: GroupRange[] = [];
  for (const policy of tables.keys()) {
    for (let first = 0; first < groups; first += MAX_SIZED_GROUPS) {
      ranges.push({ policy, first, count: Math.min(MAX_SIZED_GROUPS, groups - first) });
    }
  }
  const live = view.nodes().filter((node) => view.live(node) !== undefined);
  const answers = await Promise.all(
    live.map(async (node) => {
      let isAnswered = true;
      for (const range of ranges) {
        isAnswered = (await askNode(access, node, { range, table: tables.get(range.policy)! })) && isAnswered;
      }
      return isAnswered ? [node] : [];
    }),
  );
  const answered = new Set(answers.flat());
  const none = new Float64Array(groups);
  return {
    bytesOf: (policy, group) => tables.get(policy)?.[group] ?? 0,
    ofPolicy: (policy) => tables.get(policy) ?? none,
    isWhole: [...allGroups(view.map)].every((key) => {
      const { primary } = view.group(key);
      return primary !== undefined && answered.has(primary);
    }),
  };
}

/** @returns whether it answered */
async function askNode(
  { link, map }: Access,
  node: NodeId,
  { range, table }: { readonly range: GroupRange; readonly table: Float64Array },
): Promise<boolean> {
  try {
    const message = encodeGroupSizesRequest(range);
    const answer = await link(node).call(VERB.GROUP_SIZES, message, { deadlineMs: CALL_MS });
    const { view } = map;
    const told = new Map<number, number>();
    decodeGroupSizes(answer, range, (group, bytes) => told.set(group, bytes));
    for (let group = range.first; group < range.first + range.count; group++) {
      const bytes = told.get(group);
      // of those that are its own and that it does not name, it has nothing
      const isIts = view.group({ policy: range.policy, group: asGroupId(group) }).primary === node;
      if (bytes !== undefined || isIts) table[group] = bytes ?? 0;
    }
    return true;
  } catch (error) {
    // a node that does not answer is lost, or of an earlier version: the figures are estimates then
    if (codeOf(error) === undefined) throw error;
    return false;
  }
}
