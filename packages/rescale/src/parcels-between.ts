import type { GroupId, NodeId } from '@webdfs/base';
import type { PlacementTable } from '@webdfs/placement';
import type { Parcel } from './parcel.ts';

export interface GroupContents {
  /** Bytes of one copy of a group. */
  readonly bytesOf: (group: GroupId) => number;
  /** Into how many parcels a group is cut, so that several holders can share it; each is named `group · parts + part`. */
  readonly parts: number;
}

/** What must be copied to turn one placement into another. Groups whose members stay, or only change their order, need nothing. */
export function parcelsBetween(
  before: PlacementTable,
  after: PlacementTable,
  { bytesOf, parts }: GroupContents,
): Parcel[] {
  const parcels: Parcel[] = [];
  for (let number = 0; number < before.groupCount; number++) {
    const group = number as GroupId;
    const holders: NodeId[] = before.members(group);
    const goal = after.members(group);
    const receivers = goal.filter((node) => !holders.includes(node));
    if (receivers.length === 0) continue;
    const safeCopies = holders.filter((node) => goal.includes(node)).length;
    const bytes = bytesOf(group) / parts;
    for (let part = 0; part < parts; part++) {
      parcels.push({ id: number * parts + part, bytes, holders, receivers, safeCopies });
    }
  }
  return parcels;
}
