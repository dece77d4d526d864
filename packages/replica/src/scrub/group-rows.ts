import { compareBytes, type GroupKey, type NodeId, type Sequence } from '@webdfs/base';
import type { WalkRow } from '@webdfs/store';
import { type BlockPageRow, decodePage, encodePageRequest, type Page } from '../learner-codec.ts';
import { compareWalk, RowRun } from '../learner-compare.ts';
import type { ReplicaHost } from '../replica-host.ts';
import { VERB } from '../verbs.ts';

const CALL_MS = 30_000;

/** One key that any member has a row of; rows in the order of the members, undefined where there is none. */
export interface Union<Row> {
  readonly rows: readonly (Row | undefined)[];
  readonly any: Row;
}

interface Source<Row> {
  peek(): Promise<Row | undefined>;
  skip(): void;
}

/** Merges rows of several sources, each in order: every key once, with what each source has of it. */
export async function* union<Row>(
  sources: readonly Source<Row>[],
  compare: (a: Row, b: Row) => number,
): AsyncGenerator<Union<Row>, void, void> {
  for (;;) {
    const heads = await Promise.all(sources.map((source) => source.peek()));
    let first: Row | undefined;
    for (const head of heads) {
      if (head !== undefined && (first === undefined || compare(head, first) < 0)) first = head;
    }
    if (first === undefined) return;
    const rows: (Row | undefined)[] = [];
    for (const [i, head] of heads.entries()) {
      const has = head !== undefined && compare(head, first) === 0;
      rows.push(has ? head : undefined);
      if (has) sources[i]!.skip();
    }
    yield { rows, any: first };
  }
}

interface Listing {
  readonly members: readonly NodeId[];
  readonly signal: AbortSignal;
}

async function pageOf<Kind extends 'records' | 'blocks'>(
  host: ReplicaHost,
  source: GroupKey & { readonly node: NodeId; readonly kind: Kind; readonly signal: AbortSignal },
  after = '',
): Promise<Extract<Page, { kind: Kind }>> {
  const { node, kind, signal, policy, group } = source;
  const message = encodePageRequest({ policy, group, ballot: 0, kind, above: 0, after });
  const answer = await host.link(node).call(VERB.COPIES, message, { deadlineMs: CALL_MS, signal });
  return decodePage(answer, kind);
}

/** All records and tombstones that the members have of a group, in the order of placement hash and key. */
export function unionOfRecords(
  host: ReplicaHost,
  group: GroupKey,
  { members, signal }: Listing,
): AsyncGenerator<Union<WalkRow>, void, void> {
  const runs = members.map((node) => {
    return new RowRun<WalkRow, string>(async (after) => {
      const { rows, next } = await pageOf(host, { ...group, node, kind: 'records', signal }, after);
      return { rows: [...rows], next };
    });
  });
  return union(runs, compareWalk);
}

/** All blocks that the members have of a group, in the order of ids. */
export function unionOfBlocks(
  host: ReplicaHost,
  group: GroupKey,
  { members, signal }: Listing,
): AsyncGenerator<Union<BlockPageRow>, void, void> {
  const runs = members.map((node) => {
    return new RowRun<BlockPageRow, string>(async (after) => {
      const { rows, next } = await pageOf(host, { ...group, node, kind: 'blocks', signal }, after);
      return { rows: [...rows], next };
    });
  });
  return union(runs, (a, b) => compareBytes(a.id, b.id));
}

/** The highest tombstone among the rows of a key; 0: there is none. */
export function buriedAt(rows: readonly (WalkRow | undefined)[]): Sequence {
  return Math.max(0, ...rows.map((row) => (row?.tombstone === true ? row.sequence : 0)));
}
