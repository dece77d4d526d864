import { assert, type Random } from '@webdfs/base';
import { RECORD_VALUE_BYTES } from './index-rows.ts';

/** Slots of a node's cache, a power of two: 20 MiB. */
export const LOCATION_SLOTS = 2 ** 17;
/** Longer row keys are not cached. */
export const MAX_CACHED_KEY_BYTES = 80;

const LENGTH_AT = 0;
const VALUE_AT = 8;
const KEY_AT = VALUE_AT + RECORD_VALUE_BYTES;
const SLOT_BYTES = KEY_AT + MAX_CACHED_KEY_BYTES;

/**
 * Record rows read lately, so that a hot object is found without asking the index.
 *
 * Direct-mapped: a key has one slot, and whoever comes last has it. Each slot holds the whole key, so that a hit is a hit,
 * and the whole row, so that neither index nor volume is asked. All of it is one array outside the collected heap.
 * The owner keeps it true: every change of a row is told with `set` or `delete` before anybody can ask.
 *
 * ```
 * slot offset  size  field
 *           0     2  bytes of the key; 0: the slot is empty
 *           2     6  unused
 *           8    72  value of the row
 *          80    80  key of the row
 * ```
 */
export class LocationCache {
  readonly #bytes: Uint8Array;
  readonly #mask: number;
  /** Secret, so that nobody chooses keys that share a slot. */
  readonly #seed: number;
  hits = 0;
  misses = 0;

  /** @param options.slots  a power of two */
  constructor(options: { random: Random; slots?: number | undefined }) {
    const slots = options.slots ?? LOCATION_SLOTS;
    assert(Number.isInteger(Math.log2(slots)), 'the slots of a cache are a power of two');
    this.#bytes = new Uint8Array(slots * SLOT_BYTES);
    this.#mask = slots - 1;
    this.#seed = new DataView(options.random.bytes(4).buffer).getUint32(0);
  }

  /** The row's value, the caller's own copy; undefined if it is not here, whether or not there is such a row. */
  get(key: Uint8Array): Uint8Array | undefined {
    const slot = this.#slotOf(key);
    if (!this.#holds(slot, key)) {
      this.misses += 1;
      return undefined;
    }
    this.hits += 1;
    return this.#bytes.slice(slot + VALUE_AT, slot + KEY_AT);
  }

  /** Remembers a row, in the place of whichever had its slot. Keys that are too long are left out. */
  set(key: Uint8Array, value: Uint8Array): void {
    assert(value.length === RECORD_VALUE_BYTES, 'the cache holds record rows');
    if (key.length > MAX_CACHED_KEY_BYTES) return;
    const slot = this.#slotOf(key);
    this.#bytes[slot + LENGTH_AT] = key.length;
    this.#bytes.set(value, slot + VALUE_AT);
    this.#bytes.set(key, slot + KEY_AT);
  }

  delete(key: Uint8Array): void {
    const slot = this.#slotOf(key);
    if (this.#holds(slot, key)) this.#bytes[slot + LENGTH_AT] = 0;
  }

  clear(): void {
    this.#bytes.fill(0);
  }

  #holds(slot: number, key: Uint8Array): boolean {
    const bytes = this.#bytes;
    if (bytes[slot + LENGTH_AT] !== key.length || key.length === 0) return false;
    const from = slot + KEY_AT;
    for (let i = key.length - 1; i >= 0; i--) if (bytes[from + i] !== key[i]) return false;
    return true;
  }

  /** Offset of the key's slot. Mixing after MurmurHash3 (Appleby, 2010), a byte at a time. */
  #slotOf(key: Uint8Array): number {
    let hash = this.#seed;
    for (let i = 0; i < key.length; i++) {
      hash = Math.imul(hash ^ key[i]!, 0xcc9e2d51);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return ((hash ^ (hash >>> 16)) & this.#mask) * SLOT_BYTES;
  }
}
