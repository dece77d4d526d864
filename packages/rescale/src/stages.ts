import { type Chain, chooseChains } from './chains.ts';
import { chooseRoots } from './roots.ts';
import type { WorkTable } from './work-table.ts';

/** Parcels of one urgency, and how each travels. */
export interface Stage {
  readonly parcels: readonly number[];
  /** Of each of the parcels. */
  readonly chains: readonly Chain[];
  /** When the busiest node has done its part of this stage and of all before it. */
  readonly seconds: number;
}

/**
 * Plans parcels with equally many safe copies together, the fewest first. Those go to more receivers than others and have fewer
 * sources: if only the sum over all stages were balanced, nodes would idle at the start of the plan or at its end.
 */
export function planStages(work: WorkTable): Stage[] {
  const classes = Map.groupBy(work.parcels.keys(), (parcel) => work.parcels[parcel]!.safeCopies);
  return [...classes.keys()]
    .sort((a, b) => a - b)
    .map((safeCopies) => {
      const parcels = classes.get(safeCopies)!;
      for (const parcel of parcels) work.admit(parcel);
      chooseRoots(work, parcels);
      const chains = chooseChains(work, parcels);
      return { parcels, chains, seconds: work.busiestSeconds() };
    });
}
