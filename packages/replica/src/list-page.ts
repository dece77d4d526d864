import { compareBytes, EMPTY, plain, type PolicyId, WebdfsError } from '@webdfs/base';
import type { RecordRow, Store } from '@webdfs/store';
import { GroupSet, listRowBytes, MAX_LIST_BYTES, type NodeListAnswer, type NodeListRequest } from './list-codec.ts';
import { MAX_KEY_BYTES } from './request-codec.ts';
import type { ListRow } from './requests.ts';

/** What a page is made from. */
export interface ListSource {
  readonly store: Pick<Store, 'list'>;
  /** Number of groups of the policy. */
  readonly groupCount: number;
  /**
   * For each group of a policy the ballot in which this node may answer reads of all its keys at this instant (protocol,
   * L3 and R1), or 0. Asked before and after the scan: a page covers the groups whose ballot was the same both times.
   */
  readonly servingBallots: (policy: PolicyId) => Float64Array;
  /** Of this node's map. */
  readonly revision: () => number;
  /** Rows looked at in one call at most; a page that would need more ends where it is. */
  readonly scanRows?: number;
}

const SCAN_ROWS = 20_000;
/** Rows asked of the store at once while prefixes collapse: a long prefix wastes at most so many. */
const COLLAPSE_ROWS = 64;
const SCAN_TRIES = 4;

/**
 * One node's page over the groups it serves (protocol R3): rows in the order of keys, each committed and read while this
 * node was its group's primary.
 *
 * @throws NOT_PRIMARY if groups were lost during every try
 */
export async function listPage(source: ListSource, request: NodeListRequest): Promise<NodeListAnswer> {
  const lost = new Set<number>();
  for (let tries = 0; tries < SCAN_TRIES; tries++) {
    const before = source.servingBallots(request.policy);
    const wanted = (group: number): boolean =>
      (before[group] ?? 0) !== 0 && !lost.has(group) && (request.groups?.has(group) ?? true);
    const scan = await scanned(source, request, wanted);
    const after = source.servingBallots(request.policy);
    const covered = new GroupSet(source.groupCount);
    let some = false;
    for (let group = 0; group < source.groupCount; group++) {
      if (!wanted(group)) continue;
      if (before[group] === after[group]) {
        covered.add(group);
        some = true;
      } else lost.add(group);
    }
    // a prefix found in a lost group may hide a row of one that is still served
    const hidden = scan.rows.some((row, i) => row.prefix && lost.has(scan.groups[i]!));
    if (hidden) continue;
    const rows = scan.rows.filter((_, i) => !lost.has(scan.groups[i]!));
    return { rows, covered, next: some ? scan.next : undefined, revision: source.revision() };
  }
  const revision = source.revision();
  throw new WebdfsError('NOT_PRIMARY', 'groups were lost while they were listed', { details: { revision } });
}

interface Scan {
  readonly rows: ListRow[];
  /** The group that each row, or a row of each prefix, was found in. */
  readonly groups: number[];
  next: Uint8Array | undefined;
}

async function scanned(
  source: ListSource,
  request: NodeListRequest,
  wanted: (group: number) => boolean,
): Promise<Scan> {
  const scan: Scan = { rows: [], groups: [], next: undefined };
  const { policy, take, before, collapse } = request;
  const limit = source.scanRows ?? SCAN_ROWS;
  const size = { rows: 0 };
  let looked = 0;
  let from: Uint8Array | undefined = request.from;
  const accept = (row: RecordRow): boolean => {
    looked++;
    return row.policy === policy && wanted(row.group);
  };
  while (from !== undefined && compareBytes(from, before) < 0) {
    if (scan.rows.length >= take || looked >= limit) return { ...scan, next: from };
    const room = take - scan.rows.length;
    const page: { rows: RecordRow[]; next: Uint8Array | undefined } = await source.store.list({
      from,
      before,
      limit: limit - looked,
      accept,
      take: collapse === undefined ? room : Math.min(room, COLLAPSE_ROWS),
    });
    const stop = addRows(scan, page.rows, { request, size });
    if (stop !== undefined) return { ...scan, next: stop };
    from = behindLast(scan, page.next);
  }
  return scan;
}

/** Adds rows as they are or as the prefix they share; a key: where the page must end, for want of room. */
function addRows(
  scan: Scan,
  rows: readonly RecordRow[],
  { request, size }: { request: NodeListRequest; size: { rows: number } },
): Uint8Array | undefined {
  for (const row of rows) {
    const last = scan.rows.at(-1);
    if (last?.prefix === true && startsWith(row.key, last.key)) continue;
    const prefix = commonPrefix(row.key, request.collapse);
    const listed: ListRow = prefix === undefined ? { ...factsOf(row), prefix: false } : collapsed(prefix);
    size.rows += listRowBytes(listed);
    if (size.rows > MAX_LIST_BYTES || scan.rows.length >= request.take) return row.key;
    scan.rows.push(listed);
    scan.groups.push(row.group);
  }
  return undefined;
}

function factsOf(row: RecordRow): Omit<ListRow, 'prefix'> {
  const { key, sequence, modifiedMs, flags, summary } = row;
  return { key, sequence, modifiedMs, flags, summary };
}

function collapsed(key: Uint8Array): ListRow {
  return { key, prefix: true, sequence: 0, modifiedMs: 0, flags: 0, summary: EMPTY };
}

/** Where to go on: behind the last prefix, if the store has not come that far by itself. */
function behindLast(scan: Scan, next: Uint8Array | undefined): Uint8Array | undefined {
  const last = scan.rows.at(-1);
  if (next === undefined || last?.prefix !== true) return next;
  const behind = behindPrefix(last.key);
  return compareBytes(next, behind) < 0 ? behind : next;
}

/** The key's bytes up to and with the first delimiter behind the prefix, or undefined if there is none. */
function commonPrefix(key: Uint8Array, collapse: NodeListRequest['collapse']): Uint8Array | undefined {
  if (collapse === undefined) return undefined;
  const view = Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  const at = view.indexOf(collapse.delimiter, collapse.prefixLength);
  return at < 0 ? undefined : key.subarray(0, at + collapse.delimiter.length);
}

function startsWith(key: Uint8Array, prefix: Uint8Array): boolean {
  return key.length >= prefix.length && compareBytes(key.subarray(0, prefix.length), prefix) === 0;
}

/** The smallest key behind all that begin with `prefix`. */
export function behindPrefix(prefix: Uint8Array): Uint8Array {
  let length = prefix.length;
  while (length > 0 && prefix[length - 1] === 0xff) length--;
  // nothing but 0xff: only a key longer than any is behind it
  if (length === 0) return new Uint8Array(MAX_KEY_BYTES).fill(0xff);
  const behind = plain(prefix).slice(0, length);
  behind[length - 1]! += 1;
  return behind;
}
