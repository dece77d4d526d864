import {
  asGroupId,
  type Clock,
  compareBytes,
  EMPTY,
  type GroupKey,
  groupNumber,
  type PolicyId,
  type Sequence,
  systemClock,
  toHex,
  WebdfsError,
} from '@webdfs/base';
import { groupOf } from '@webdfs/placement';
import {
  etagOf,
  type ListPage,
  type ListRequest,
  type ListRow,
  type ReadAnswer,
  type ReadRequest,
  type WriteAnswer,
  type WriteRequest,
} from '@webdfs/replica';
import type { Piece } from '@webdfs/wire';
import type { BlockHeader, BlockUpload, Groups } from './groups.ts';
import { behind, next } from './keyspace.ts';
import { MemoryBlocks } from './memory-blocks.ts';

interface Row extends ReadAnswer {
  readonly key: Uint8Array;
}

export interface MemoryGroupsOptions {
  /** log2 of the number of groups. */
  readonly groupBits?: number;
  /** Bytes of bodies and blocks kept; beyond it writes are refused with DISK_FULL. */
  readonly maxBytes?: number;
  readonly clock?: Clock;
}

/** Answers remembered so that a repeated request is not done again. */
const REQUESTS_KEPT = 65_536;
const DEFAULT_BYTES = 2 ** 30;
const BALLOT = 1;

/** One policy's rows in the order of their keys. Latin-1 strings compare as the bytes they stand for. */
class Rows {
  readonly #byKey = new Map<string, Row>();
  #order: string[] = [];
  #sorted = true;

  static #name(key: Uint8Array): string {
    return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1');
  }

  get(key: Uint8Array): Row | undefined {
    return this.#byKey.get(Rows.#name(key));
  }

  set(row: Row): void {
    const name = Rows.#name(row.key);
    if (!this.#byKey.has(name)) {
      this.#sorted &&= this.#order.length === 0 || this.#order.at(-1)! < name;
      this.#order.push(name);
    }
    this.#byKey.set(name, row);
  }

  delete(key: Uint8Array): void {
    if (this.#byKey.delete(Rows.#name(key))) this.#sorted = false;
  }

  /** Rows from a key on. */
  *from(key: Uint8Array): Generator<Row> {
    if (!this.#sorted) {
      this.#order = [...this.#byKey.keys()].sort();
      this.#sorted = true;
    }
    const name = Rows.#name(key);
    let low = 0;
    for (let high = this.#order.length; low < high;) {
      const middle = (low + high) >>> 1;
      if (this.#order[middle]! < name) low = middle + 1;
      else high = middle;
    }
    for (let at = low; at < this.#order.length; at++) {
      yield this.#byKey.get(this.#order[at]!)!;
    }
  }
}

/**
 * Groups in one process: exact in what they answer, durable in nothing. For embedding without a disk, and for tests of
 * everything above.
 */
export class MemoryGroups implements Groups {
  readonly #groupBits: number;
  readonly #maxBytes: number;
  readonly #clock: Clock;
  readonly #rows = new Map<PolicyId, Rows>();
  readonly #last = new Map<number, Sequence>();
  #requests = new Map<string, WriteAnswer>();
  #olderRequests: ReadonlyMap<string, WriteAnswer> = this.#requests;
  readonly #blocks: MemoryBlocks;
  #bytes = 0;

  constructor(options: MemoryGroupsOptions = {}) {
    this.#groupBits = options.groupBits ?? 6;
    this.#maxBytes = options.maxBytes ?? DEFAULT_BYTES;
    this.#clock = options.clock ?? systemClock;
    this.#blocks = new MemoryBlocks((bytes) => this.#charge(bytes));
  }

  /** Bytes of bodies and blocks kept. */
  get bytes(): number {
    return this.#bytes;
  }

  groupOf(policy: PolicyId, hashHigh: number): GroupKey {
    return { policy, group: asGroupId(groupOf(hashHigh, this.#groupBits)) };
  }

  write(request: WriteRequest): Promise<WriteAnswer> {
    return attempt(() => this.#write(request));
  }

  read(request: ReadRequest): Promise<ReadAnswer | undefined> {
    return attempt(() => {
      const row = this.#policy(request.policy).get(request.key);
      if (row === undefined) return undefined;
      const { sequence, modifiedMs, flags, summary } = row;
      const entry = request.entry ? { owner: row.owner, body: row.body } : { owner: EMPTY, body: EMPTY };
      return { sequence, modifiedMs, flags, summary, ...entry };
    });
  }

  list(request: ListRequest): Promise<ListPage> {
    return attempt(() => page(this.#policy(request.policy).from(request.from), request));
  }

  putBlock(policy: PolicyId, id: Uint8Array, _header: BlockHeader, signal?: AbortSignal): BlockUpload {
    return this.#blocks.put(policy, id, signal);
  }

  readBlock(
    policy: PolicyId,
    id: Uint8Array,
    range: { offset: number; length: number; signal?: AbortSignal },
  ): AsyncIterable<Piece> {
    return this.#blocks.read(policy, id, range);
  }

  #policy(policy: PolicyId): Rows {
    let rows = this.#rows.get(policy);
    if (rows === undefined) this.#rows.set(policy, (rows = new Rows()));
    return rows;
  }

  #charge(bytes: number): void {
    if (bytes > 0 && this.#bytes + bytes > this.#maxBytes) {
      throw new WebdfsError(
        'DISK_FULL',
        `${this.#bytes} of ${this.#maxBytes} bytes are taken, ${bytes} more do not fit`,
      );
    }
    this.#bytes += bytes;
  }

  #write(request: WriteRequest): WriteAnswer {
    const requestName = `${groupNumber(request)} ${toHex(request.requestId)}`;
    const known = this.#requests.get(requestName) ?? this.#olderRequests.get(requestName);
    if (known !== undefined) return known;
    const rows = this.#policy(request.policy);
    const present = rows.get(request.key);
    checkConditions(request, present);
    checkRequirements(request, rows);
    this.#charge(request.body.length - (present?.body.length ?? 0));

    const sequence = (this.#last.get(groupNumber(request)) ?? 0) + 1;
    this.#last.set(groupNumber(request), sequence);
    const modifiedMs = this.#clock.now();
    const { key, summary, owner, body } = request;
    if (request.kind === 'delete') rows.delete(key);
    else {
      // the caller keeps what it handed over
      const copies = { key: key.slice(), summary: summary.slice(), owner: owner.slice(), body: body.slice() };
      rows.set({ ...copies, sequence, modifiedMs, flags: 0 });
    }
    if (request.closes !== undefined) this.#close(rows, request.closes);
    const answer: WriteAnswer = {
      sequence,
      ballot: BALLOT,
      modifiedMs,
      replaced: present && { sequence: present.sequence, summary: present.summary },
    };
    this.#remember(requestName, answer);
    return answer;
  }

  #close(rows: Rows, key: Uint8Array): void {
    this.#charge(-(rows.get(key)?.body.length ?? 0));
    rows.delete(key);
  }

  /** In two halves: the older is dropped whole, because a map whose first entries are gone is slow to walk. */
  #remember(requestName: string, answer: WriteAnswer): void {
    if (this.#requests.size >= REQUESTS_KEPT / 2) {
      this.#olderRequests = this.#requests;
      this.#requests = new Map();
    }
    this.#requests.set(requestName, answer);
  }
}

/** Calls on a later turn, as a network would: whoever forgets to wait is found out. */
async function attempt<T>(action: () => T): Promise<T> {
  await Promise.resolve();
  return action();
}

/** @throws PRECONDITION_FAILED */
function checkConditions({ conditions: { ifMatch, ifNoneMatch } }: WriteRequest, present: Row | undefined): void {
  const etag = present && etagOf(present.summary);
  const names = (tags: readonly string[]): boolean => etag !== undefined && (tags.includes('*') || tags.includes(etag));
  const failed =
    (ifMatch !== undefined && !names(ifMatch) && 'If-Match') ||
    (ifNoneMatch !== undefined && names(ifNoneMatch) && 'If-None-Match');
  if (!failed) return;
  const found = etag === undefined ? 'there is no such key' : `the key has ETag ${etag}`;
  throw new WebdfsError('PRECONDITION_FAILED', `${failed} does not hold: ${found}`, {
    details: { exists: etag !== undefined },
  });
}

/** @throws CONFLICT */
function checkRequirements({ requires }: WriteRequest, rows: Rows): void {
  for (const { key, sequence } of requires) {
    const found = rows.get(key)?.sequence ?? 0;
    if (sequence === -1 ? found > 0 : found === sequence) continue;
    throw new WebdfsError('CONFLICT', `a required key is at ${found}, not at ${sequence}`);
  }
}

/** The position behind the first `delimiter` at or after `start`, −1 without one. */
function delimiterEnd(key: Uint8Array, delimiter: Uint8Array, start: number): number {
  const at = Buffer.from(key.buffer, key.byteOffset, key.byteLength).indexOf(delimiter, start);
  return at < 0 ? -1 : at + delimiter.length;
}

function page(rows: Generator<Row>, { before, take, collapse }: ListRequest): ListPage {
  const taken: ListRow[] = [];
  let from: Uint8Array | undefined;
  let skipBefore: Uint8Array | undefined;
  for (const row of rows) {
    if (compareBytes(row.key, before) >= 0) return { rows: taken, next: undefined };
    if (skipBefore !== undefined && compareBytes(row.key, skipBefore) < 0) continue;
    if (taken.length === take) return { rows: taken, next: from };
    const end = collapse ? delimiterEnd(row.key, collapse.delimiter, collapse.prefixLength) : -1;
    if (end >= 0) {
      const key = row.key.slice(0, end);
      taken.push({ key, prefix: true, sequence: 0, modifiedMs: 0, flags: 0, summary: EMPTY });
      skipBefore = behind(key);
      if (skipBefore === undefined) return { rows: taken, next: undefined };
      from = skipBefore;
    } else {
      const { key, sequence, modifiedMs, flags, summary } = row;
      taken.push({ key, prefix: false, sequence, modifiedMs, flags, summary });
      from = next(key);
    }
  }
  return { rows: taken, next: undefined };
}
