import { type Ballot, fromUtf8, type Sequence, utf8, WebdfsError } from '@webdfs/base';
import { MAX_MARK_BYTES, MAX_VOID_RANGES } from './limits.ts';
import type { GroupMark } from './store.ts';

/** Entries with after < sequence ≤ upTo and above < ballot < below are void for good; −1 or missing: of any lower ballot. */
export interface VoidRange {
  readonly after: Sequence;
  readonly upTo: Sequence;
  readonly below: Ballot;
  readonly above?: Ballot | undefined;
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
  return utf8(JSON.stringify({ ...rest, voids: voids.map(packRange) }));
}

type PackedRange = [after: number, upTo: number, below: number, above?: number];

function packRange({ after, upTo, below, above }: VoidRange): PackedRange {
  return above === undefined ? [after, upTo, below] : [after, upTo, below, above];
}

function unpackRange([after, upTo, below, above]: PackedRange): VoidRange {
  return above === undefined ? { after, upTo, below } : { after, upTo, below, above };
}

/** @throws CORRUPT */
export function unpackMark(bytes: Uint8Array): MarkContent {
  let parsed: unknown;
  try {
    parsed = JSON.parse(fromUtf8(bytes));
  } catch (error) {
    throw new WebdfsError('CORRUPT', 'group mark is no JSON', { cause: error });
  }
  const content = parsed as Omit<MarkContent, 'voids'> & { voids: PackedRange[] };
  if (typeof content.number !== 'number' || !Array.isArray(content.voids)) {
    throw new WebdfsError('CORRUPT', 'group mark lacks its number or its ranges');
  }
  return { ...content, voids: content.voids.map(unpackRange) };
}

export function isVoid(voids: readonly VoidRange[], sequence: Sequence, ballot: Ballot): boolean {
  return voids.some((range) => isIn(range, sequence, ballot));
}

function isIn({ after, upTo, below, above = -1 }: VoidRange, sequence: Sequence, ballot: Ballot): boolean {
  return sequence > after && sequence <= upTo && ballot < below && ballot > above;
}

/** Adds a range, joined with one that it goes on from; the oldest go beyond `MAX_VOID_RANGES`. */
export function addVoid(voids: readonly VoidRange[], range: VoidRange): VoidRange[] {
  if (voids.some((old) => covers(old, range))) return [...voids];
  const kept = voids.filter((old) => !covers(range, old));
  const at = kept.findLastIndex(
    (old) =>
      old.below === range.below && old.above === range.above && old.after <= range.after && old.upTo >= range.after,
  );
  if (at >= 0) kept[at] = { ...range, after: kept[at]!.after };
  else kept.push(range);
  return kept.slice(-MAX_VOID_RANGES);
}

function covers(one: VoidRange, other: VoidRange): boolean {
  const { above = -1 } = one;
  return one.after <= other.after && one.upTo >= other.upTo && one.below >= other.below && above <= (other.above ?? -1);
}

/**
 * Takes an entry out of the void again: an adopted log has it after all, and so everything up to it. Others of its sequence
 * stay void, of lower ballots whatever said so before, of higher ones if a range said so.
 */
export function reviveFrom(voids: readonly VoidRange[], sequence: Sequence, ballot: Ballot): VoidRange[] {
  const around = voids.filter((range) => isIn(range, sequence, ballot));
  if (around.length === 0) return [...voids];
  const rest = voids.flatMap((range) => {
    if (!around.includes(range)) return [range];
    return sequence === range.upTo ? [] : [{ ...range, after: sequence }];
  });
  const here = { after: sequence - 1, upTo: sequence };
  const below = Math.max(...around.map((range) => range.below));
  const lower = addVoid(rest, { ...here, below: ballot });
  return below === ballot + 1 ? lower : addVoid(lower, { ...here, above: ballot, below });
}
