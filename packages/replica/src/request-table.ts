import { assert, type Ballot, type GroupKey, groupNumber, type Sequence } from '@webdfs/base';
import type { WriteAnswer } from './requests.ts';

/** Where a request's entry stands in its group's log. */
export interface KnownWrite {
  readonly sequence: Sequence;
  readonly ballot: Ballot;
  /** Wall time of the primary that appended it. */
  readonly timeMs: number;
}

const FIRST_CAPACITY = 1_024;
const ID_WORDS = 4;
/** Answers with what they replaced, kept in full; older ones are answered without it. */
const KEPT_ANSWERS = 4_096;

/**
 * The requests whose entries this node has, so that a retry is answered and not done again (protocol, section 4). One
 * table for all groups of a node: a ring in the order of arrival, found by a hash of the id, and chained by group for those who
 * hand a group's requests on. An entry costs 68 bytes; the oldest leaves when its time is over, or when the table
 * is full: then `horizonMs` says which requests can no longer be told from new ones.
 */
export class RequestTable {
  readonly #limit: number;
  readonly #keepMs: number;
  #capacity = FIRST_CAPACITY;
  #ids = new Uint32Array(FIRST_CAPACITY * ID_WORDS);
  #groups = new Float64Array(FIRST_CAPACITY);
  #sequences = new Float64Array(FIRST_CAPACITY);
  #ballots = new Float64Array(FIRST_CAPACITY);
  #times = new Float64Array(FIRST_CAPACITY);
  /** Position of the request before in the same group, −1: none. */
  #before = new Float64Array(FIRST_CAPACITY);
  /** Open addressing, twice the capacity: ring index + 1, 0 empty. */
  #slots = new Int32Array(FIRST_CAPACITY * 2);
  /** Positions count from the first request ever; ring index = position mod capacity. */
  #first = 0;
  #next = 0;
  readonly #newest = new Map<number, number>();
  readonly #answers = new Map<number, WriteAnswer>();
  #horizonMs = 0;

  /** @param entries  how many at most, a power of two of at least 1 024 */
  constructor(options: { entries: number; keepMs: number }) {
    assert(options.entries >= FIRST_CAPACITY, 'a request table has at least 1024 entries');
    assert((options.entries & (options.entries - 1)) === 0, 'the size of a request table is a power of two');
    this.#limit = options.entries;
    this.#keepMs = options.keepMs;
  }

  /** How many are remembered, cut ones included until their time is over. */
  get size(): number {
    return this.#next - this.#first;
  }

  /** A request begun at this wall time or before may have been forgotten for want of room. */
  get horizonMs(): number {
    return this.#horizonMs;
  }

  /** Remembers a request and gives its position, for `forget`. Of a request known already the later place counts. */
  remember(group: GroupKey, requestId: Uint8Array, write: KnownWrite): number {
    const known = this.#seek(groupNumber(group), requestId);
    if (known >= 0) {
      if (write.ballot >= this.#ballots[known]!) this.#fill(known, write);
      return this.#positionOf(known);
    }
    if (this.size === this.#capacity) this.#makeRoom();
    const position = this.#next++;
    const index = position % this.#capacity;
    const view = new DataView(requestId.buffer, requestId.byteOffset, 16);
    for (let word = 0; word < ID_WORDS; word++) this.#ids[index * ID_WORDS + word] = view.getUint32(word * 4, true);
    const number = groupNumber(group);
    this.#groups[index] = number;
    this.#before[index] = this.#newest.get(number) ?? -1;
    this.#newest.set(number, position);
    this.#fill(index, write);
    this.#insert(index);
    return position;
  }

  /** Keeps what a write answered, for its repeats. */
  keepAnswer(group: GroupKey, requestId: Uint8Array, answer: WriteAnswer): void {
    const index = this.#seek(groupNumber(group), requestId);
    if (index < 0) return;
    if (this.#answers.size >= KEPT_ANSWERS) this.#answers.delete(this.#answers.keys().next().value!);
    this.#answers.set(this.#positionOf(index), answer);
  }

  find(group: GroupKey, requestId: Uint8Array): KnownWrite | undefined {
    const index = this.#seek(groupNumber(group), requestId);
    if (index < 0) return undefined;
    return { sequence: this.#sequences[index]!, ballot: this.#ballots[index]!, timeMs: this.#times[index]! };
  }

  /** What the write answered; without `replaced` where that is no longer known. */
  answer(group: GroupKey, requestId: Uint8Array): WriteAnswer | undefined {
    const index = this.#seek(groupNumber(group), requestId);
    if (index < 0) return undefined;
    const kept = this.#answers.get(this.#positionOf(index));
    const known = { sequence: this.#sequences[index]!, ballot: this.#ballots[index]! };
    if (kept !== undefined && kept.sequence === known.sequence) return kept;
    return { ...known, modifiedMs: this.#times[index]!, replaced: undefined };
  }

  /** The entry at this position was cut: the request was not done. */
  forget(position: number, ballot: Ballot): void {
    if (position < this.#first) return;
    const index = position % this.#capacity;
    if (this.#ballots[index] !== ballot) return;
    if (this.#sequences[index] !== 0) this.#remove(index);
    this.#sequences[index] = 0;
    this.#answers.delete(position);
  }

  /** The requests of one group, newest first. */
  *of(group: GroupKey): Generator<KnownWrite & { requestId: Uint8Array }> {
    let position = this.#newest.get(groupNumber(group)) ?? -1;
    while (position >= this.#first) {
      const index = position % this.#capacity;
      if (this.#sequences[index] !== 0) {
        const requestId = new Uint8Array(this.#ids.slice(index * ID_WORDS, (index + 1) * ID_WORDS).buffer);
        const write = { sequence: this.#sequences[index]!, ballot: this.#ballots[index]!, timeMs: this.#times[index]! };
        yield { requestId, ...write };
      }
      position = this.#before[index]!;
    }
  }

  /** Forgets those whose time is over. */
  expire(nowMs: number): void {
    while (this.#first < this.#next && this.#times[this.#first % this.#capacity]! < nowMs - this.#keepMs) this.#drop();
  }

  #fill(index: number, write: KnownWrite): void {
    this.#sequences[index] = write.sequence;
    this.#ballots[index] = write.ballot;
    this.#times[index] = write.timeMs;
  }

  #positionOf(index: number): number {
    const first = this.#first % this.#capacity;
    return this.#first + ((index - first + this.#capacity) % this.#capacity);
  }

  #drop(): void {
    const index = this.#first % this.#capacity;
    if (this.#sequences[index] !== 0) this.#remove(index);
    const number = this.#groups[index]!;
    if (this.#newest.get(number) === this.#first) this.#newest.delete(number);
    this.#answers.delete(this.#first);
    this.#first++;
  }

  #makeRoom(): void {
    if (this.#capacity < this.#limit) return this.#grow();
    this.#horizonMs = Math.max(this.#horizonMs, this.#times[this.#first % this.#capacity]!);
    this.#drop();
  }

  #grow(): void {
    const old = { capacity: this.#capacity, ids: this.#ids };
    const columns = [this.#groups, this.#sequences, this.#ballots, this.#times, this.#before];
    this.#capacity *= 2;
    this.#ids = new Uint32Array(this.#capacity * ID_WORDS);
    const larger = columns.map(() => new Float64Array(this.#capacity));
    for (let position = this.#first; position < this.#next; position++) {
      const from = position % old.capacity;
      const to = position % this.#capacity;
      this.#ids.set(old.ids.subarray(from * ID_WORDS, (from + 1) * ID_WORDS), to * ID_WORDS);
      for (let i = 0; i < columns.length; i++) larger[i]![to] = columns[i]![from]!;
    }
    [this.#groups, this.#sequences, this.#ballots, this.#times, this.#before] = larger as [
      Float64Array<ArrayBuffer>,
      Float64Array<ArrayBuffer>,
      Float64Array<ArrayBuffer>,
      Float64Array<ArrayBuffer>,
      Float64Array<ArrayBuffer>,
    ];
    this.#slots = new Int32Array(this.#capacity * 2);
    for (let position = this.#first; position < this.#next; position++) {
      const index = position % this.#capacity;
      if (this.#sequences[index] !== 0) this.#insert(index);
    }
  }

  /** Ids may be chosen by clients: all four words are mixed, so that no run of slots is easily made long. */
  #home(index: number): number {
    const at = index * ID_WORDS;
    return this.#mix(this.#ids[at]!, this.#ids[at + 1]!, this.#ids[at + 2]!, this.#ids[at + 3]!);
  }

  #mix(a: number, b: number, c: number, d: number): number {
    let hash = Math.imul(a ^ (b >>> 15), 0x2c1b3c6d) ^ Math.imul(b ^ (c >>> 13), 0x297a2d39);
    hash ^= Math.imul(c ^ (d >>> 16), 0x9e3779b1) ^ Math.imul(d ^ (a >>> 14), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97);
    return (hash ^ (hash >>> 15)) & (this.#slots.length - 1);
  }

  #seek(number: number, requestId: Uint8Array): number {
    assert(requestId.length === 16, 'a request id has 16 bytes');
    const view = new DataView(requestId.buffer, requestId.byteOffset, 16);
    const a = view.getUint32(0, true);
    const b = view.getUint32(4, true);
    const c = view.getUint32(8, true);
    const d = view.getUint32(12, true);
    const mask = this.#slots.length - 1;
    for (let slot = this.#mix(a, b, c, d); ; slot = (slot + 1) & mask) {
      const index = this.#slots[slot]! - 1;
      if (index < 0) return -1;
      const at = index * ID_WORDS;
      if (this.#ids[at] !== a || this.#ids[at + 1] !== b) continue;
      if (this.#ids[at + 2] === c && this.#ids[at + 3] === d && this.#groups[index] === number) return index;
    }
  }

  #insert(index: number): void {
    const mask = this.#slots.length - 1;
    let slot = this.#home(index);
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = index + 1;
  }

  /** Backward-shift deletion. Source: Knuth, TAOCP 3, section 6.4, algorithm R. */
  #remove(index: number): void {
    const mask = this.#slots.length - 1;
    let hole = this.#home(index);
    while (this.#slots[hole] !== index + 1) hole = (hole + 1) & mask;
    for (let slot = (hole + 1) & mask; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const home = this.#home(this.#slots[slot]! - 1);
      const reach = (slot - home) & mask;
      if (reach < ((slot - hole) & mask)) continue;
      this.#slots[hole] = this.#slots[slot]!;
      hole = slot;
    }
    this.#slots[hole] = 0;
  }
}
