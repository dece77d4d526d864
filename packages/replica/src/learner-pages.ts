import { codeOf, compareBytes, crc32c, fromHex, type GroupKey, toHex, WebdfsError } from '@webdfs/base';
import type { LogEntry, Store, WalkRow } from '@webdfs/store';
import type { Fetched, FetchItem } from './fetch-codec.ts';
import { MAX_FETCH_BYTES } from './fetch-codec.ts';
import { type BlockPageRow, type GroupSum, MAX_PAGE_ROWS, type Page, type PageRequest } from './learner-codec.ts';
import type { ReplicaHost } from './replica-host.ts';

/** Rows looked at for one page of those above a sequence; at their end the page ends too, though it may be empty. */
const LOOK_ROWS = 8_192;
/** A last stretch of a page is not worth a walk of its own below this. */
const LEAST_WALK = 64;
/** Bytes of notes in one page. */
const NOTE_BYTES = 524_288;
const ALL = new Uint8Array(0);

/** What a group holds here, for comparison. */
export async function sumOf(store: Store, group: GroupKey): Promise<GroupSum> {
  const notes = sumOfNotes(await store.notes(group, ALL));
  const { commit, objects, blocks, digest } = store.log(group);
  return { commit, objects, blocks, digest, notes };
}

/** Notes with an empty value are as good as none. */
function sumOfNotes(notes: readonly { name: Uint8Array; value: Uint8Array }[]): number {
  let sum = 0;
  for (const { name, value } of notes.toSorted((a, b) => compareBytes(a.name, b.name))) {
    if (value.length > 0) sum = crc32c(value, crc32c(name, sum));
  }
  return sum;
}

export function sameContents(a: GroupSum, b: GroupSum): boolean {
  return a.objects === b.objects && a.blocks === b.blocks && a.digest === b.digest && a.notes === b.notes;
}

/**
 * One page of a group that this node serves, made from committed state.
 *
 * @throws NOT_PRIMARY with this node's revision if it does not serve the group in that ballot, before and after
 */
export async function pageOf(host: ReplicaHost, request: PageRequest): Promise<Page> {
  checkServing(host, request);
  const page = await makePage(host, request);
  checkServing(host, request);
  return page;
}

function checkServing(host: ReplicaHost, request: PageRequest): void {
  if (host.serving(request) === request.ballot) return;
  const details = { revision: host.map.view.revision };
  throw new WebdfsError('NOT_PRIMARY', `group ${request.policy}/${request.group} is not served in this ballot`, {
    details,
  });
}

/** A page of what this node has applied of a group, whoever serves it: for a comparison of members. */
export async function makePage(host: ReplicaHost, request: PageRequest): Promise<Page> {
  const { store } = host;
  // before anything is read: what is missing from the page was missing then, or came later
  const asOf = store.log(request).commit;
  switch (request.kind) {
    case 'sum':
      return { kind: 'sum', sum: await sumOf(store, request) };
    case 'records':
      return { kind: 'records', asOf, ...(await recordRows(store, request)) };
    case 'blocks':
      return { kind: 'blocks', asOf, ...(await blockRows(store, request)) };
    case 'notes':
      return { kind: 'notes', asOf, ...(await noteRows(store, request)) };
    case 'requests': {
      const first = request.after === '' ? 0 : Number(request.after);
      const rows = [...host.requestsOf(request)].slice(first, first + MAX_PAGE_ROWS);
      const next = rows.length === MAX_PAGE_ROWS ? String(first + MAX_PAGE_ROWS) : undefined;
      return { kind: 'requests', asOf, rows, next };
    }
  }
}

async function recordRows(store: Store, request: PageRequest): Promise<{ rows: WalkRow[]; next: string | undefined }> {
  const rows: WalkRow[] = [];
  let after = request.after === '' ? undefined : request.after;
  let looked = 0;
  for (;;) {
    const walk = await store.walkRecords(request, after, MAX_PAGE_ROWS - rows.length);
    for (const row of walk.rows) if (row.sequence > request.above) rows.push(row);
    looked += walk.rows.length;
    after = walk.next;
    if (after === undefined || MAX_PAGE_ROWS - rows.length < LEAST_WALK || looked >= LOOK_ROWS) {
      return { rows, next: after };
    }
  }
}

async function blockRows(
  store: Store,
  request: PageRequest,
): Promise<{ rows: BlockPageRow[]; next: string | undefined }> {
  const after = request.after === '' ? undefined : fromHex(request.after);
  const { rows, next } = await store.walkBlocks(request, after, MAX_PAGE_ROWS);
  const above = rows.filter(({ sequence }) => sequence > request.above);
  return { rows: above, next: next === undefined ? undefined : toHex(next) };
}

async function noteRows(
  store: Store,
  request: PageRequest,
): Promise<{ rows: { name: Uint8Array; value: Uint8Array }[]; next: string | undefined }> {
  const after = request.after === '' ? undefined : fromHex(request.after);
  const all = (await store.notes(request, ALL)).toSorted((a, b) => compareBytes(a.name, b.name));
  const rows: { name: Uint8Array; value: Uint8Array }[] = [];
  let bytes = 0;
  for (const note of all) {
    if (after !== undefined && compareBytes(note.name, after) <= 0) continue;
    bytes += note.name.length + note.value.length;
    const isFull = rows.length === MAX_PAGE_ROWS || (rows.length > 0 && bytes > NOTE_BYTES);
    if (isFull) return { rows, next: toHex(rows.at(-1)!.name) };
    rows.push(note);
  }
  return { rows, next: undefined };
}

/** The newest applied entries of the first items, as many as one answer holds, and at least one. */
export async function fetchKeys(store: Store, items: readonly FetchItem[]): Promise<Fetched[]> {
  const answers: Fetched[] = [];
  let bytes = 0;
  for (const item of items) {
    const answer = await fetchedOf(store, item);
    if (answer.state === 'entry') bytes += entryBytes(answer.entry);
    if (answers.length > 0 && bytes > MAX_FETCH_BYTES) break;
    answers.push(answer);
  }
  return answers;
}

function entryBytes(entry: LogEntry): number {
  return 96 + entry.key.length + entry.meta.length + entry.body.length;
}

/** Tries where the entry is replaced between the look-up and the read. */
const READ_TRIES = 4;

async function fetchedOf(store: Store, item: FetchItem): Promise<Fetched> {
  for (let tries = 1; ; tries++) {
    try {
      const entry = await readOf(store, item);
      return entry === undefined ? { state: 'absent' } : { state: 'entry', entry };
    } catch (error) {
      const code = codeOf(error);
      if (code === 'CORRUPT') return { state: 'damaged' };
      if ((code !== 'CONFLICT' && code !== 'NOT_FOUND') || tries === READ_TRIES) throw error;
    }
  }
}

async function readOf(store: Store, item: FetchItem): Promise<LogEntry | undefined> {
  if (item.type === 'record') {
    const row = store.find(item.id);
    return row === undefined ? undefined : await store.read(row);
  }
  const row = store.findBlock(item, item.id);
  return row === undefined ? undefined : await store.readBlockEntry(row);
}
