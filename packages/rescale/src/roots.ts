import type { WorkTable } from './work-table.ts';

/** Rounds of moving parcels to cheaper holders; each is linear, and few are needed. */
const MAX_ROUNDS = 24;

/**
 * Chooses who reads each of some parcels: greedily, the largest first, each by the holder that is then least busy. Within a few per
 * cent of the optimum that a flow finds (roots.test.ts), in linear time.
 */
export function chooseRoots(work: WorkTable, parcels: readonly number[]): void {
  const order = parcels.toSorted(
    (a, b) => work.bytes(b) - work.bytes(a) || work.holders[a]!.length - work.holders[b]!.length || a - b,
  );
  for (const parcel of order) work.setRoot(parcel, leastBusy(work, parcel));
  improveRoots(work, order);
}

/** The holder that would be least busy with a parcel. */
function leastBusy(work: WorkTable, parcel: number): number {
  const [first, ...others] = work.holders[parcel]!;
  let best = first!;
  let least = work.serveSeconds(best, parcel);
  for (const holder of others) {
    const seconds = work.serveSeconds(holder, parcel);
    if (seconds < least) [best, least] = [holder, seconds];
  }
  return best;
}

/** Seconds that a node is busy as a source. */
function servingSeconds(work: WorkTable, node: number): number {
  return Math.max(work.sendSeconds(node, 0), work.deviceSeconds(node, 0));
}

/** Moves parcels from a holder to one that, with the parcel, is still less busy; until there is none, or often enough. */
function improveRoots(work: WorkTable, parcels: readonly number[]): void {
  const tiny = 1e-12;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    let moved = false;
    for (const parcel of parcels) {
      const root = work.roots[parcel]!;
      const now = servingSeconds(work, root);
      for (const holder of work.holders[parcel]!) {
        if (holder === root || !(work.serveSeconds(holder, parcel) < now * (1 - tiny))) continue;
        work.setRoot(parcel, holder);
        moved = true;
        break;
      }
    }
    if (!moved) return;
  }
}
