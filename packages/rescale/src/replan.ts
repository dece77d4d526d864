import type { NodeId } from '@webdfs/base';
import type { Parcel } from './parcel.ts';
import type { Rates } from './rates.ts';

/** How far a measured rate may depart from the planned one before a new plan is worth making. */
const TOLERANCE = 0.1;

/** What has become of a plan so far. */
export interface Standing {
  /** A copy is durable there; it can serve now. */
  readonly hasArrived: (parcel: number, node: NodeId) => boolean;
  /** The node serves and takes nothing any more. */
  readonly isLost: (node: NodeId) => boolean;
  /** The node is to hold what it holds: it neither leaves nor failed. */
  readonly stays: (node: NodeId) => boolean;
}

/**
 * What is left of some parcels, to be planned anew when a node dies, the target changes, or rates are not what was thought. Receivers that
 * have a parcel count as holders, so nothing is sent twice but what was under way; let that arrive first, or keep its order: a window of
 * the old order beside one of the new could wait for each other in a circle.
 */
export function remainingParcels(parcels: readonly Parcel[], { hasArrived, isLost, stays }: Standing): Parcel[] {
  return parcels.flatMap((parcel) => {
    const receivers = parcel.receivers.filter((node) => !isLost(node) && !hasArrived(parcel.id, node));
    if (receivers.length === 0) return [];
    const arrived = parcel.receivers.filter((node) => hasArrived(parcel.id, node));
    const holders = [...parcel.holders, ...arrived].filter((node) => !isLost(node));
    return [{ ...parcel, holders, receivers, safeCopies: holders.filter(stays).length }];
  });
}

/** Whether a node's rates depart so far from those of the plan that the plan no longer fits. */
export function departsFrom(planned: Rates, measured: Rates): boolean {
  const departs = (a: number, b: number): boolean => a !== b && Math.abs(b - a) > TOLERANCE * a;
  return (
    departs(planned.network, measured.network) ||
    departs(planned.read, measured.read) ||
    departs(planned.write, measured.write)
  );
}
