import type { NodeId, Sequence } from '@webdfs/base';
import type { Look } from './look-codec.ts';

/** What one in-sync member has of one thing. */
export interface Witness {
  readonly node: NodeId;
  readonly look: Look;
  /** Its disk has lost entries that nobody can name: that it lacks something proves nothing. */
  readonly suspect: boolean;
}

export const FAULTS = ['missing', 'damaged', 'stale', 'differs', 'surplus'] as const;
/**
 * What can be wrong with a copy: it is not there, its bytes are not what was written, it is an older version, it is the
 * right version with other contents, or it should not be there at all.
 */
export type Fault = (typeof FAULTS)[number];

export interface Wrong {
  readonly node: NodeId;
  readonly fault: Fault;
}

/**
 * What the members together say of one thing:
 *
 * - held: it exists in this version; `good` have it so, `wrong` do not
 * - gone: it does not exist; those in `wrong` have it all the same
 * - disputed: what they have contradicts each other, and nothing proves who is right; `good` are those that have it
 */
export type Judgement =
  | {
      readonly type: 'held';
      readonly sequence: Sequence;
      readonly check: number;
      readonly good: readonly NodeId[];
      readonly wrong: readonly Wrong[];
    }
  | { readonly type: 'gone'; readonly wrong: readonly Wrong[] }
  | { readonly type: 'disputed'; readonly why: string; readonly good: readonly NodeId[] };

/** What is known of a thing beside what members have of it. */
export interface Evidence {
  /** The highest tombstone of the key that a member has; 0: there is none. */
  readonly buriedAt: Sequence;
  /** A committed record names it, so it must exist. */
  readonly isNamed: boolean;
}

/**
 * Judges one thing by what all members have of it, at a time when all had applied the same writes to it.
 *
 * Rows are made only by committed entries, so the highest version that anybody has is true; what must be decided is who
 * is right where some have a row and others nothing: the copy was lost here, or its deletion was missed there. A tombstone
 * above the row proves the deletion. The primary is believed if it has the row, and so is a larger part of the members that
 * has it. That something is gone is never believed without a tombstone: then nothing is touched, and somebody must look.
 *
 * @param witnesses  one for each in-sync member, the primary first
 */
export function judge(witnesses: readonly Witness[], { buriedAt, isNamed }: Evidence): Judgement {
  const holders = witnesses.filter(({ look }) => look.state !== 'absent');
  const newest = Math.max(0, ...holders.map(({ look }) => look.sequence));
  const wrongly = holders.map(({ node }): Wrong => ({ node, fault: 'surplus' }));
  if (newest === 0 || buriedAt > newest) return { type: 'gone', wrong: wrongly };
  if (witnesses[0]!.look.state === 'absent' && !isNamed) {
    const vouching = witnesses.filter(({ look, suspect }) => look.state === 'absent' && !suspect).length;
    if (vouching >= holders.length) {
      const why = `${holders.length} have it, ${vouching} do not, and nothing shows that it was deleted`;
      return { type: 'disputed', why, good: holders.filter(isIntact(newest)).map(({ node }) => node) };
    }
  }
  return held(witnesses, newest);
}

function isIntact(sequence: Sequence): (witness: Witness) => boolean {
  return ({ look }) => look.state === 'intact' && look.sequence === sequence;
}

function held(witnesses: readonly Witness[], sequence: Sequence): Judgement {
  const intact = witnesses.filter(isIntact(sequence));
  const check = mostOf(intact.map(({ look }) => look.check));
  if (check === undefined) {
    return { type: 'disputed', why: 'as many say one thing as another', good: intact.map(({ node }) => node) };
  }
  const good: NodeId[] = [];
  const wrong: Wrong[] = [];
  for (const { node, look } of witnesses) {
    const fault = faultOf(look, sequence, check);
    if (fault === undefined) good.push(node);
    else wrong.push({ node, fault });
  }
  return { type: 'held', sequence, check, good, wrong };
}

function faultOf(look: Look, sequence: Sequence, check: number): Fault | undefined {
  if (look.state === 'absent') return 'missing';
  if (look.sequence < sequence) return 'stale';
  if (look.state !== 'intact') return 'damaged';
  return look.check === check ? undefined : 'differs';
}

/** The value that most have; undefined if several have the same number of followers; 0 of none. */
function mostOf(values: readonly number[]): number | undefined {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const ordered = [...counts].toSorted((a, b) => b[1] - a[1]);
  if (ordered.length === 0) return 0;
  return ordered.length > 1 && ordered[0]![1] === ordered[1]![1] ? undefined : ordered[0]![0];
}
