import type { Hop } from './chains.ts';
import type { Stage } from './roots.ts';

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
 * @param firstHop  of a parcel, by its position: it decides in which pair the parcel is counted
 */
export function turnsOf(stages: readonly Stage[], firstHop: (parcel: number) => Hop): Map<number, number> {
  const turns = new Map<number, number>();
  const whole = stages.at(-1)?.seconds ?? 0;
  let start = 0;
  for (const { parcels, seconds } of stages) {
    const end = whole === 0 ? 1 : seconds / whole;
    const pairs = Map.groupBy(parcels, (parcel) => firstHop(parcel).from * NODE_SPAN + firstHop(parcel).to);
    for (const [pair, list] of pairs) {
      const offset = offsetOf(pair);
      list.sort((a, b) => ((a * GOLDEN) % 1) - ((b * GOLDEN) % 1));
      for (const [j, parcel] of list.entries()) turns.set(parcel, start + ((end - start) * (j + offset)) / list.length);
    }
    start = end;
  }
  return turns;
}
