import type { Stage } from './stages.ts';

const NODE_SPAN = 65_536;
/** Multiples of it fill [0, 1) evenly, in an order that has nothing to do with the parcels'. */
const GOLDEN = 0.618_033_988_749_894_9;

/** A fixed number in [0, 1) for a pair, so that pairs do not all begin at once. */
function offsetOf(pair: number): number {
  return (Math.imul(pair + 1, 0x9e3779b1) >>> 0) / 4_294_967_296;
}

/**
 * Gives every parcel its turn, 0 at the start of the plan and 1 at its end. Within its stage each pair of nodes runs evenly, so that
 * no node exceeds its rate and all finish together: the j-th of n parcels that one reads for the other has its turn at (j + offset)/n.
 *
 * All copies of a parcel have one turn, so that what is read for the first is still in memory for the others. A copy that is passed on
 * comes after the one that is passed on because it is deeper.
 *
 * @returns the turn of each parcel, by its number in the table
 */
export function turnsOf(stages: readonly Stage[]): Map<number, number> {
  const turns = new Map<number, number>();
  const whole = stages.at(-1)?.seconds ?? 0;
  let start = 0;
  for (const { parcels, chains, seconds } of stages) {
    const end = whole === 0 ? 1 : seconds / whole;
    const pairs = Map.groupBy(parcels.keys(), (i) => chains[i]![0]!.from * NODE_SPAN + chains[i]![0]!.to);
    for (const [pair, list] of pairs) {
      const offset = offsetOf(pair);
      list.sort((a, b) => ((parcels[a]! * GOLDEN) % 1) - ((parcels[b]! * GOLDEN) % 1));
      for (const [j, i] of list.entries()) {
        turns.set(parcels[i]!, start + ((end - start) * (j + offset)) / list.length);
      }
    }
    start = end;
  }
  return turns;
}
