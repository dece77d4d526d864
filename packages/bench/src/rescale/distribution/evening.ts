import { assert, type SeededRandom } from '@webdfs/base';

/** Per file, the nodes chosen and the nodes that may be chosen; by dense numbers. */
export interface Choices {
  readonly chosen: number[][];
  readonly candidates: (file: number) => readonly number[];
  /** All nodes that are to be chosen equally often. */
  readonly nodes: readonly number[];
}

const TRIES_PER_FILE = 400;

/** Replaces choices at random until every node is chosen equally often, but for one. Chance decides all else. */
export function evenOut({ chosen, candidates, nodes }: Choices, random: SeededRandom): void {
  const files = new Map(nodes.map((node): [number, number[]] => [node, []]));
  for (const [file, list] of chosen.entries()) for (const node of list) files.get(node)!.push(file);
  const total = chosen.reduce((sum, list) => sum + list.length, 0);
  const [floor, ceiling] = [Math.floor(total / nodes.length), Math.ceil(total / nodes.length)];
  const count = (node: number): number => files.get(node)!.length;
  for (let tries = chosen.length * TRIES_PER_FILE; tries > 0; tries--) {
    const least = nodes.reduce((a, b) => (count(b) < count(a) ? b : a));
    const most = nodes.reduce((a, b) => (count(b) > count(a) ? b : a));
    if (count(least) >= floor && count(most) <= ceiling) return;
    const [from, to] =
      count(most) > ceiling
        ? [most, anyBelow(nodes, count, ceiling, random)]
        : [anyAbove(nodes, count, floor, random), least];
    const held = files.get(from)!;
    const at = random.below(held.length);
    const file = held[at]!;
    const list = chosen[file]!;
    if (list.includes(to) || !candidates(file).includes(to)) continue;
    list[list.indexOf(from)] = to;
    held[at] = held.at(-1)!;
    held.pop();
    files.get(to)!.push(file);
  }
  assert(false, 'choices can be evened out');
}

type Count = (node: number) => number;

function anyBelow(nodes: readonly number[], count: Count, limit: number, random: SeededRandom): number {
  const some = nodes.filter((node) => count(node) < limit);
  return some[random.below(some.length)]!;
}

function anyAbove(nodes: readonly number[], count: Count, limit: number, random: SeededRandom): number {
  const some = nodes.filter((node) => count(node) > limit);
  return some[random.below(some.length)]!;
}

/** `count` distinct ones of some nodes, at random. */
export function pick(nodes: readonly number[], count: number, random: SeededRandom): number[] {
  const rest = [...nodes];
  for (let i = 0; i < count; i++) {
    const j = i + random.below(rest.length - i);
    [rest[i], rest[j]] = [rest[j]!, rest[i]!];
  }
  return rest.slice(0, count);
}
