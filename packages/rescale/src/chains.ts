import type { WorkTable } from './work-table.ts';

/** One copy of a parcel on its way; node numbers of the table. */
export interface Hop {
  readonly from: number;
  readonly to: number;
  readonly depth: number;
}

/** Who sends a parcel to whom, in the order in which the receivers get it; the first hop is the root's. */
export type Chain = readonly Hop[];

/** The cheapest sender so far. `senders[0]` is the root: preferred while sending more does not make it the slowest of all. */
function senderOf(work: WorkTable, parcel: number, senders: readonly number[], pace: number): number {
  const bytes = work.bytes(parcel);
  let best = 0;
  let least = work.sendSeconds(senders[0]!, bytes);
  if (least <= pace) return best;
  for (let i = 1; i < senders.length; i++) {
    const seconds = work.sendSeconds(senders[i]!, bytes);
    if (seconds < least) [best, least] = [i, seconds];
  }
  return best;
}

function chainOf(work: WorkTable, parcel: number, pace: number): Chain {
  const root = work.roots[parcel]!;
  // who can best pass it on gets it first
  const receivers = work.receivers[parcel]!.toSorted((a, b) => work.sendSeconds(a, 0) - work.sendSeconds(b, 0));
  const senders = [root];
  const depths = [-1];
  return receivers.map((to, i) => {
    const chosen = i === 0 ? 0 : senderOf(work, parcel, senders, pace);
    const from = senders[chosen]!;
    // the first copy that the root sends is already counted
    if (i > 0) work.addSend(parcel, from);
    const depth = depths[chosen]! + 1;
    senders.push(to);
    depths.push(depth);
    return { from, to, depth };
  });
}

/**
 * Chooses, for parcels that go to several nodes, who sends each copy: the root, from the block it has read, unless sending is what
 * sets the pace; then whoever of those that have the parcel has sent least.
 *
 * @returns the chain of each parcel, in their order
 */
export function chooseChains(work: WorkTable, parcels: readonly number[]): Chain[] {
  const pace = work.busiestSeconds();
  return parcels.map((parcel) => chainOf(work, parcel, pace));
}
