import type { GroupId, NodeId } from './ids.ts';
import { PlacementError } from './placement-error.ts';
import { type Amendment, amendmentOf } from './amendment.ts';
import { type PlaceOptions, placerOf } from './place.ts';
import type { Topology } from './topology.ts';

/** The placement of all groups under one topology, computed as it is asked for and kept. */
export interface PlacementTable {
  readonly topology: Topology;
  readonly groupCount: number;
  /** Length of every list: the count asked for, or less if `shortfall: 'fewer'` allowed it. */
  readonly count: number;
  /** A group's list, the caller's own. @throws PlacementError INVALID if there is no such group */
  members(group: GroupId): NodeId[];
  /** The node of one rank, 0 first: the look-up that allocates nothing. @throws PlacementError INVALID as `members`, or no such rank */
  memberAt(group: GroupId, rank: number): NodeId;
  /** All lists one after another, `count` node ids per group; only to be read. Computes what is missing. */
  rows(): Uint16Array;
  /** The same as far as it is computed: zeros where it is not. */
  placedRows(): Uint16Array;
}

export interface CompileOptions extends PlaceOptions {
  /**
   * A table of an earlier topology. What it has computed is taken over or amended where that is exact and cheaper than
   * placing the group again; the result is the same table as without. It may be forgotten afterwards.
   */
  readonly previous?: PlacementTable;
}

const MAX_GROUP_BITS = 24;
/** In a row: not computed yet. No node has this id. */
const UNPLACED = 0;

/** Lists of an earlier table that may become lists of this one. */
interface Inheritance {
  readonly rows: Uint16Array;
  readonly amend: Amendment;
}

function inheritanceOf(
  previous: PlacementTable | undefined,
  topology: Topology,
  shape: { readonly groupCount: number; readonly count: number },
): Inheritance | undefined {
  if (previous === undefined || previous.groupCount !== shape.groupCount || previous.count !== shape.count) return;
  const amend = amendmentOf(previous.topology, topology, shape.count);
  if (amend === undefined) return;
  // a copy, so that no table keeps another one alive
  const rows = previous.placedRows().slice();
  // pinned lists are more than an order of scores
  for (const { group } of [...(previous.topology.pins ?? []), ...(topology.pins ?? [])]) {
    if (group < shape.groupCount) rows[group * shape.count] = UNPLACED;
  }
  return { rows, amend };
}

/**
 * Prepares a topology once for all groups. Groups are placed at their first look-up: a change of the topology costs a
 * node only the groups it asks for, and with the table before it hardly more than those whose list changes.
 *
 * @param groupBits  log2 of the number of groups, 0..24
 * @throws PlacementError INVALID, BAD_CONFIG as `place`
 *
 * Memory: 2 bytes per copy, twice that where there is a table before it.
 */
export function compilePlacement(
  topology: Topology,
  groupBits: number,
  count: number,
  options: CompileOptions = {},
): PlacementTable {
  if (!Number.isInteger(groupBits) || groupBits < 0 || groupBits > MAX_GROUP_BITS) {
    throw new PlacementError('INVALID', `group bits are ${groupBits}, allowed are 0 to ${MAX_GROUP_BITS}`);
  }
  const groupCount = 2 ** groupBits;
  const placer = placerOf(topology, count, options);
  const width = placer.count;
  const inheritance = inheritanceOf(options.previous, topology, { groupCount, count: width });
  const rows = new Uint16Array(groupCount * width);

  /** Fills a group's row. */
  const settle = (group: number): void => {
    if (!Number.isInteger(group) || group < 0 || group >= groupCount) {
      throw new PlacementError('INVALID', `no group ${group}, there are ${groupCount}`);
    }
    const from = group * width;
    const inherited = inheritance?.rows.subarray(from, from + width);
    const known = inherited !== undefined && inherited[0] !== UNPLACED;
    rows.set((known ? inheritance!.amend(group, inherited) : undefined) ?? placer.place(group), from);
  };

  return {
    topology,
    groupCount,
    count: width,
    members(group) {
      const from = group * width;
      if (!(rows[from]! > UNPLACED)) settle(group);
      // oxlint-disable-next-line unicorn/no-new-array -- of the right size at once: pushing would make room for seventeen
      const list = new Array<NodeId>(width);
      for (let rank = 0; rank < width; rank++) list[rank] = rows[from + rank] as NodeId;
      return list;
    },
    memberAt(group, rank) {
      if (rank >>> 0 !== rank || rank >= width)
        throw new PlacementError('INVALID', `no rank ${rank}, there are ${width}`);
      const at = group * width + rank;
      if (!(rows[at]! > UNPLACED)) settle(group);
      return rows[at] as NodeId;
    },
    rows() {
      for (let group = 0; group < groupCount; group++) if (rows[group * width] === UNPLACED) settle(group);
      return rows;
    },
    placedRows: () => rows,
  };
}
