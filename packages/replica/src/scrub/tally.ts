import type { NodeId } from '@webdfs/base';
import { FAULTS, type Fault, type Wrong } from './judgement.ts';

/** Things named one by one in a group's result, and in a node's; of more only the number is kept. */
export const MAX_GROUP_PROBLEMS = 16;
export const MAX_NODE_PROBLEMS = 1_000;

/** Something that was not as it should be when it was counted. */
export interface Problem {
  readonly group: number;
  readonly policy: number;
  /** The record's key in hex: bucket number and key. */
  readonly key: string;
  /** `record`, or which of its blocks. */
  readonly what: string;
  /** Good copies when it was counted. */
  readonly copies: number;
  readonly wrong: readonly { readonly node: number; readonly fault: Fault }[];
  /** All that was wrong has been put right. */
  readonly mended: boolean;
  readonly why?: string;
}

/**
 * What was found when a group was counted. An object's copies are those of its record or of that of its blocks which has
 * the fewest: `objects[n]` objects have n good copies, as they were found, before anything was mended.
 */
export interface Tally {
  readonly objects: number[];
  /** The same of records that are no objects: buckets, open uploads and their parts. */
  readonly others: number[];
  /** Bytes of one copy of everything counted. */
  bytes: number;
  /** Wrong copies found, by what was wrong, and how many of them were put right. */
  readonly found: Record<Fault, number>;
  mended: number;
  /** Wrong copies that could not be put right, and things about which members contradict each other. */
  left: number;
  readonly problems: Problem[];
  omitted: number;
}

export function emptyTally(): Tally {
  const found = Object.fromEntries(FAULTS.map((fault) => [fault, 0])) as Record<Fault, number>;
  return { objects: [], others: [], bytes: 0, found, mended: 0, left: 0, problems: [], omitted: 0 };
}

export function countCopies(copies: number[], count: number, by = 1): void {
  while (copies.length <= count) copies.push(0);
  copies[count]! += by;
}

export function noteProblem(tally: Tally, problem: Problem, limit = MAX_GROUP_PROBLEMS): void {
  if (tally.problems.length < limit) tally.problems.push(problem);
  else tally.omitted++;
}

/** Adds one tally to another. */
export function addTally(sum: Tally, part: Tally): void {
  for (const [count, objects] of part.objects.entries()) countCopies(sum.objects, count, objects);
  for (const [count, others] of part.others.entries()) countCopies(sum.others, count, others);
  for (const fault of FAULTS) sum.found[fault] += part.found[fault];
  sum.bytes += part.bytes;
  sum.mended += part.mended;
  sum.left += part.left;
  sum.omitted += part.omitted;
  for (const problem of part.problems) noteProblem(sum, problem, MAX_NODE_PROBLEMS);
}

export function wrongOf(wrong: readonly Wrong[]): { node: NodeId; fault: Fault }[] {
  return wrong.map(({ node, fault }) => ({ node, fault }));
}
