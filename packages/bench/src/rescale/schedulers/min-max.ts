import type { NodeId } from '@webdfs/base';
import { type Parcel, planRescale } from '@webdfs/rescale';
import type { DataTransferScheduler, PlacedFile, ScheduleInput } from '../parts.ts';

/** What must be copied, as parcels; files that stay where they are among them. */
export function parcelsOf({ files, membership }: ScheduleInput): Parcel[] {
  const staying = new Set(membership.after);
  return files.map(({ bytes, before, after }: PlacedFile, id): Parcel => ({
    id,
    bytes,
    holders: before,
    receivers: after.filter((node) => !before.includes(node)),
    safeCopies: before.filter((node) => staying.has(node)).length,
  }));
}

/** WebDFS's own plan. */
export const MIN_MAX: DataTransferScheduler = {
  name: 'webdfs',
  schedule: (input) => planRescale(parcelsOf(input), input.ratesOf),
};

/** A control: the same plan if only nodes that leave may serve, as most stores drain. Where no holder leaves, all may. */
export const LEAVING_ONLY: DataTransferScheduler = {
  name: 'leaving node only',
  schedule(input) {
    const staying = new Set<NodeId>(input.membership.after);
    const parcels = parcelsOf(input).map((parcel) => {
      const leaving = parcel.holders.filter((node) => !staying.has(node));
      return leaving.length === 0 ? parcel : { ...parcel, holders: leaving };
    });
    return planRescale(parcels, input.ratesOf);
  },
};
