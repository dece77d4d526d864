import { type Ballot, fromUtf8, type Sequence, utf8, WebdfsError } from '@webdfs/base';
import { MAX_MARK_BYTES, MAX_VOID_RANGES } from './limits.ts';
import type { GroupMark } from './store.ts';

/** Entries with after < sequence ≤ upTo and a ballot below `below` are void for good. */
export interface VoidRange {
  readonly after: Sequence;
  readonly upTo: Sequence;
  readonly below: Ballot;
}

/**
 * What a GROUP_MARK says, as JSON in the meta of its entry: all that is remembered of a group beside its entries. Each
 * mark replaces the one before; `number` tells which is newer, in whatever order compaction leaves them.
 */
export interface MarkContent {
  /** 1, 2, 3, … over the life of the group on this node. */
  readonly number: number;
  readonly mark?: GroupMark | undefined;
  readonly voids: readonly VoidRange[];
  /** A learner's log begins after this sequence (and its ballot); set by the mark with that number, and kept since. */
  readonly base?: { readonly sequence: Sequence; readonly ballot: Ballot; readonly number: number } | undefined;
  /** The group was dropped: entries of earlier tenures are void. */
  readonly dropped?: true | undefined;
}

/** @throws TOO_LARGE if the protocol's part is beyond `MAX_MARK_BYTES` */
export function packMark(content: MarkContent): Uint8Array {
  if (content.mark !== undefined && JSON.stringify(content.mark).length > MAX_MARK_BYTES) {
    throw new WebdfsError('TOO_LARGE', `a group's mark has at most ${MAX_MARK_BYTES} bytes`);
  }
  const { voids, ...rest } = content;
  return utf8(JSON.stringify({ ...rest, voids: voids.map(({ after, upTo, below }) => [after, upTo, below]) }));
}

/** @throws CORRUPT */
export function unpackMark(bytes: Uint8Array): MarkContent {
  let parsed: unknown;
  try {
    parsed = JSON.parse(fromUtf8(bytes));
  } catch (error) {
    throw new WebdfsError('CORRUPT', 'group mark is no JSON', { cause: error });
  }
  const content = parsed as Omit<MarkContent, 'voids'> & { voids: [number, number, number][] };
  if (typeof content.number !== 'number' || !Array.isArray(content.voids)) {
    throw new WebdfsError('CORRUPT', 'group mark lacks its number or its ranges');
  }
  return { ...content, voids: content.voids.map(([after, upTo, below]) => ({ after, upTo, below })) };
}

export function isVoid(voids: readonly VoidRange[], sequence: Sequence, ballot: Ballot): boolean {
  for (const range of voids) {
    if (sequence > range.after && sequence <= range.upTo && ballot < range.below) return true;
  }
  return false;
}

/** Adds a range, joined with one that it goes on from; the oldest go beyond `MAX_VOID_RANGES`. */
export function addVoid(voids: readonly VoidRange[], range: VoidRange): VoidRange[] {
  if (voids.some((old) => covers(old, range))) return [...voids];
  const kept = voids.filter((old) => !covers(range, old));
  const at = kept.findLastIndex(
    ({ after, upTo, below }) => below === range.below && after <= range.after && upTo >= range.after,
  );
  if (at >= 0) kept[at] = { ...range, after: kept[at]!.after };
  else kept.push(range);
  return kept.slice(-MAX_VOID_RANGES);
}

function covers(one: VoidRange, other: VoidRange): boolean {
  return one.after <= other.after && one.upTo >= other.upTo && one.below >= other.below;
}

/**
 * Takes an entry out of the void again: an adopted log has it after all, and so everything up to it. Others of its sequence
 * and a lower ballot stay void, whatever said so before.
 */
export function reviveFrom(voids: readonly VoidRange[], sequence: Sequence, ballot: Ballot): VoidRange[] {
  if (!isVoid(voids, sequence, ballot)) return [...voids];
  const rest = voids.flatMap((range) => {
    if (sequence <= range.after || sequence > range.upTo || ballot >= range.below) return [range];
    return sequence === range.upTo ? [] : [{ ...range, after: sequence }];
  });
  return addVoid(rest, { after: sequence - 1, upTo: sequence, below: ballot });
}
