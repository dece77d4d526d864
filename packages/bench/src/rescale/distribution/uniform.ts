import type { NodeId, SeededRandom } from '@webdfs/base';
import type { DataDistributionGenerator, Membership, PlacedFile } from '../parts.ts';
import { evenOut, pick } from './evening.ts';

type Lists = number[][];
type Evening = (chosen: Lists, candidates: (file: number) => readonly number[], nodes: readonly number[]) => void;

/** How many new nodes get each file, as if its nodes were drawn anew from all; in sum exactly the new nodes' share. */
function arrivals(holders: Lists, membership: Membership, random: SeededRandom): number[] {
  const { before, after, copies } = membership;
  const all = after.map((_, i) => i);
  const counts = holders.map(() => pick(all, copies, random).filter((node) => node >= before.length).length);
  const share = Math.round((holders.length * copies * (after.length - before.length)) / after.length);
  let surplus = counts.reduce((sum, count) => sum + count, 0) - share;
  const most = Math.min(copies, after.length - before.length);
  while (surplus !== 0) {
    const file = random.below(counts.length);
    const next = counts[file]! - Math.sign(surplus);
    if (next < 0 || next > most) continue;
    counts[file] = next;
    surplus -= Math.sign(surplus);
  }
  return counts;
}

function grown(holders: Lists, membership: Membership, random: SeededRandom, even: Evening): Lists {
  const { before, after } = membership;
  const old = before.map((_, i) => i);
  const fresh = after.slice(before.length).map((_, i) => before.length + i);
  const counts = arrivals(holders, membership, random);
  const receivers = counts.map((count) => pick(fresh, count, random));
  even(receivers, () => fresh, fresh);
  const dropped = holders.map((list, file) => pick(list, counts[file]!, random));
  even(dropped, (file) => holders[file]!, old);
  return holders.map((list, file) => [...list.filter((node) => !dropped[file]!.includes(node)), ...receivers[file]!]);
}

function shrunk(holders: Lists, membership: Membership, random: SeededRandom, even: Evening): Lists {
  const staying = membership.after.map((_, i) => i);
  const kept = holders.map((list) => list.filter((node) => node < staying.length));
  const others = (file: number): number[] => staying.filter((node) => !kept[file]!.includes(node));
  const receivers = holders.map((list, file) => pick(others(file), list.length - kept[file]!.length, random));
  even(receivers, others, staying);
  return kept.map((list, file) => [...list, ...receivers[file]!]);
}

function distribution(name: string, evened: boolean): DataDistributionGenerator {
  return {
    name,
    distribute(sizes, membership, random) {
      const { before, after, copies } = membership;
      const even: Evening = (chosen, candidates, nodes) => {
        if (evened) evenOut({ chosen, candidates, nodes }, random);
      };
      const all = before.map((_, i) => i);
      const holders = sizes.map(() => pick(all, copies, random));
      even(holders, () => all, all);
      const grows = after.length > before.length;
      const final = grows ? grown(holders, membership, random, even) : shrunk(holders, membership, random, even);
      const nodes: readonly NodeId[] = grows ? after : before;
      const ids = (list: readonly number[]): NodeId[] => list.map((node) => nodes[node]!);
      return sizes.map((bytes, file): PlacedFile => ({ bytes, before: ids(holders[file]!), after: ids(final[file]!) }));
    },
  };
}

/**
 * Every set of nodes equally likely, and every node equally full, before and after. Old nodes stand first where some join, staying
 * ones first where some leave; files are of one size.
 */
export const UNIFORM: DataDistributionGenerator = distribution('uniform', true);

/** As chance has it: some nodes are fuller. */
export const RANDOM: DataDistributionGenerator = distribution('random', false);
