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

/** Adds a range, joined with those it touches; the oldest go beyond `MAX_VOID_RANGES`. */
export function addVoid(voids: readonly VoidRange[], range: VoidRange): VoidRange[] {
  const kept = voids.filter((old) => !(old.after >= range.after && old.upTo <= range.upTo && old.below <= range.below));
  const last = kept.at(-1);
  if (last !== undefined && last.below === range.below && last.upTo >= range.after && last.after <= range.after) {
    kept[kept.length - 1] = { ...last, upTo: Math.max(last.upTo, range.upTo) };
    return kept;
  }
  return [...kept, range].slice(-MAX_VOID_RANGES);
}

/** Takes an entry out of the void again: an adopted log has it after all, and so everything up to it. */
export function reviveFrom(voids: readonly VoidRange[], sequence: Sequence, ballot: Ballot): VoidRange[] {
  return voids.flatMap((range) => {
    if (sequence <= range.after || sequence > range.upTo || ballot >= range.below) return [range];
    return sequence === range.upTo ? [] : [{ ...range, after: sequence }];
  });
}
