import type { GroupId, NodeId } from '@webdfs/base';
import { WebdfsError } from '@webdfs/base/errors';
import { type PlaceOptions, placerOf } from './place.ts';
import type { Topology } from './topology.ts';

/** The placement of all groups under one topology, computed as it is asked for and kept. */
export interface PlacementTable {
  readonly groupCount: number;
  /** Length of every list: the count asked for, or less if `shortfall: 'fewer'` allowed it. */
  readonly count: number;
  /** The same frozen list at every call. @throws WebdfsError INVALID if there is no such group */
  members(group: GroupId): readonly NodeId[];
  /** All lists one after another: `count` node ids per group. Computes what is missing. */
  rows(): Uint16Array;
}

const MAX_GROUP_BITS = 24;

/**
 * Prepares a topology once for all groups. Groups are placed at their first look-up: a change of the topology costs a
 * node only the groups it asks for.
 *
 * @param groupBits  log2 of the number of groups, 0..24
 * @throws WebdfsError INVALID, BAD_CONFIG as `place`
 *
 * Memory: 2 bytes per copy, and the lists handed out.
 */
export function compilePlacement(
  topology: Topology,
  groupBits: number,
  count: number,
  options: PlaceOptions = {},
): PlacementTable {
  if (!Number.isInteger(groupBits) || groupBits < 0 || groupBits > MAX_GROUP_BITS) {
    throw new WebdfsError('INVALID', `group bits are ${groupBits}, allowed are 0 to ${MAX_GROUP_BITS}`);
  }
  const groupCount = 2 ** groupBits;
  const placer = placerOf(topology, count, options);
  const table = new Uint16Array(groupCount * placer.count);
  const lists: (readonly NodeId[] | undefined)[] = Array.from({ length: groupCount });

  const members = (group: GroupId): readonly NodeId[] => {
    const known = lists[group];
    if (known !== undefined) return known;
    if (!Number.isInteger(group) || group < 0 || group >= groupCount) {
      throw new WebdfsError('INVALID', `no group ${group}, there are ${groupCount}`);
    }
    const list = Object.freeze(placer.place(group));
    table.set(list, group * placer.count);
    lists[group] = list;
    return list;
  };

  return {
    groupCount,
    count: placer.count,
    members,
    rows() {
      for (let group = 0; group < groupCount; group++) members(group as GroupId);
      return table;
    },
  };
}
