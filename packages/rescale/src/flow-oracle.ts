import type { Parcel } from './parcel.ts';
import { type RatesOf, secondsFor } from './rates.ts';

/** What a maximum flow finds: the jury of the planner, too slow to be one. */

const ROUNDS = 40;
const TINY = 1e-9;
/** How narrowly the least time is found. */
const PRECISION = 1e-4;

/** Largest flow from the first node to the last, by shortest augmenting paths (Edmonds and Karp, J. ACM 19, 1972). */
function maximumFlow(capacity: number[][]): number {
  const last = capacity.length - 1;
  for (let flow = 0; ;) {
    const parents = shortestPath(capacity);
    if (parents[last] === -1) return flow;
    let room = Infinity;
    for (let node = last; node !== 0; node = parents[node]!) room = Math.min(room, capacity[parents[node]!]![node]!);
    for (let node = last; node !== 0; node = parents[node]!) {
      capacity[parents[node]!]![node]! -= room;
      capacity[node]![parents[node]!]! += room;
    }
    flow += room;
  }
}

function shortestPath(capacity: readonly (readonly number[])[]): number[] {
  const parents = capacity.map(() => -1);
  parents[0] = 0;
  const queue = [0];
  for (const node of queue) {
    for (const [next, room] of capacity[node]!.entries()) {
      if (room <= TINY || parents[next] !== -1) continue;
      parents[next] = node;
      queue.push(next);
    }
  }
  return parents;
}

/**
 * The least time in which every parcel can be read and sent once, were parcels divisible, and all copies received and written.
 */
export function leastSeconds(parcels: readonly Parcel[], ratesOf: RatesOf): number {
  const nodes = [...new Set(parcels.flatMap(({ holders, receivers }) => [...holders, ...receivers]))];
  const taken = nodes.map((node) =>
    parcels.reduce((sum, { bytes, receivers }) => sum + (receivers.includes(node) ? bytes : 0), 0),
  );
  const total = parcels.reduce((sum, { bytes }) => sum + bytes, 0);
  /** Parcels with the same holders are one. */
  const pools = [...Map.groupBy(parcels, ({ holders }) => holders.toSorted((a, b) => a - b).join()).values()].map(
    (same) => ({ holders: same[0]!.holders, bytes: same.reduce((sum, { bytes }) => sum + bytes, 0) }),
  );
  const fits = (seconds: number): boolean => {
    const size = pools.length + nodes.length + 2;
    const capacity = Array.from({ length: size }, () => Array.from({ length: size }, () => 0));
    for (const [i, { bytes, holders }] of pools.entries()) {
      capacity[0]![1 + i] = bytes;
      for (const holder of holders) capacity[1 + i]![1 + pools.length + nodes.indexOf(holder)] = bytes;
    }
    for (const [i, node] of nodes.entries()) {
      const { network, read, write } = ratesOf(node);
      const reading = seconds - secondsFor(taken[i]!, write);
      capacity[1 + pools.length + i]![size - 1] = Math.max(
        0,
        Math.min(network * seconds, reading <= 0 ? 0 : read * reading, total),
      );
    }
    return maximumFlow(capacity) >= total * (1 - TINY) - TINY;
  };
  const floor = nodes.map((node, i) =>
    Math.max(secondsFor(taken[i]!, ratesOf(node).network), secondsFor(taken[i]!, ratesOf(node).write)),
  );
  let [low, high] = [Math.max(...floor), Math.max(...floor, 1)];
  while (!fits(high)) high *= 2;
  for (let round = 0; round < ROUNDS && high - low > high * PRECISION; round++) {
    const middle = (low + high) / 2;
    if (fits(middle)) high = middle;
    else low = middle;
  }
  return high;
}
