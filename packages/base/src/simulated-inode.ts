import type { SeededRandom } from './random.ts';

/** What a disk writes as a whole, bytes; only tearing goes below it. */
export const SECTOR_BYTES = 512;

interface Write {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** A buffer that grows and knows how much of it counts. */
class Extent {
  bytes: Uint8Array = new Uint8Array(0);
  length = 0;

  put(offset: number, source: Uint8Array): void {
    this.lengthen(offset + source.length);
    this.bytes.set(source, offset);
  }

  /** At least `length` long; what is new is zeros. */
  lengthen(length: number): void {
    if (length > this.bytes.length) {
      const larger = new Uint8Array(Math.max(length, this.bytes.length * 2));
      larger.set(this.bytes.subarray(0, this.length));
      this.bytes = larger;
    }
    this.length = Math.max(this.length, length);
  }

  copy(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }

  become(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.length = bytes.length;
  }
}

/** Pieces of a write that end where sectors end. */
function* sectorsOf(write: Write): Generator<Write> {
  let done = 0;
  while (done < write.bytes.length) {
    const offset = write.offset + done;
    const count = Math.min(write.bytes.length - done, SECTOR_BYTES - (offset % SECTOR_BYTES));
    yield { offset, bytes: write.bytes.subarray(done, done + count) };
    done += count;
  }
}

/**
 * One file of a simulated disk: what programs see (the page cache), what is on stable storage, and the writes between.
 *
 *     write ──▶ cache ──┬── reads
 *                       └── unsynced: w4 w5 w6 ──settle(mark)──▶ durable ──▶ what a power cut leaves
 */
export class SimulatedInode {
  readonly #cache = new Extent();
  readonly #durable = new Extent();
  #unsynced: Write[] = [];
  /** Number of the first unsynced write, counted since the file was made. */
  #first = 0;

  get size(): number {
    return this.#cache.length;
  }

  get durableSize(): number {
    return this.#durable.length;
  }

  durableBytes(): Uint8Array {
    return this.#durable.copy();
  }

  write(bytes: Uint8Array, offset: number): void {
    if (bytes.length === 0) return;
    const own = bytes.slice();
    this.#cache.put(offset, own);
    this.#unsynced.push({ offset, bytes: own });
  }

  read(target: Uint8Array, offset: number): number {
    const count = Math.max(0, Math.min(target.length, this.#cache.length - offset));
    if (count > 0) target.set(this.#cache.bytes.subarray(offset, offset + count));
    return count;
  }

  /** Where a sync that begins now will end: it promises the writes made before, and none made later. */
  mark(): number {
    return this.#first + this.#unsynced.length;
  }

  #take(mark: number): Write[] {
    const taken = this.#unsynced.splice(0, Math.max(0, mark - this.#first));
    this.#first += taken.length;
    return taken;
  }

  /** A sync that worked. */
  settle(mark: number): void {
    for (const write of this.#take(mark)) this.#durable.put(write.offset, write.bytes);
  }

  /**
   * A sync that failed: some sectors reach the disk, all count as clean, and the cache goes on showing every one of them.
   * Source: Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020.
   */
  betray(mark: number, random: SeededRandom): void {
    for (const write of this.#take(mark)) {
      for (const sector of sectorsOf(write)) {
        if (random.below(2) === 0) this.#durable.put(sector.offset, sector.bytes);
      }
    }
  }

  /** Clean pages leave the cache: what is read from now on comes from the disk. The length stays. */
  evict(): void {
    const length = this.#cache.length;
    this.#cache.become(this.#durable.copy());
    for (const write of this.#unsynced) this.#cache.put(write.offset, write.bytes);
    this.#cache.lengthen(length);
  }

  /**
   * A power cut. Of the unsynced writes none, all, a prefix or any sectors survive, one sector perhaps torn; the file may be
   * as long as any of its lengths since the last sync, and what was not written in it is `filler`.
   */
  cut(random: SeededRandom, filler: (count: number) => Uint8Array): void {
    const survivors = this.#survivors(random);
    const least = this.#durable.length;
    let length = survivors.reduce((end, write) => Math.max(end, write.offset + write.bytes.length), least);
    if (random.below(4) === 0) length = least + random.below(Math.max(0, this.#cache.length - least) + 1);
    const after = new Extent();
    after.become(this.#durable.copy());
    if (length > least) after.put(least, filler(length - least));
    for (const write of survivors) {
      if (write.offset < length) after.put(write.offset, write.bytes.subarray(0, length - write.offset));
    }
    this.#durable.become(after.copy());
    this.#cache.become(after.copy());
    this.#first += this.#unsynced.length;
    this.#unsynced = [];
  }

  #survivors(random: SeededRandom): Write[] {
    const writes = this.#unsynced;
    switch (random.below(4)) {
      case 0:
        return [];
      case 1:
        return [...writes];
      case 2: {
        const kept = writes.slice(0, random.below(writes.length + 1));
        const torn = writes[kept.length];
        return torn === undefined ? kept : [...kept, tear(torn, random)];
      }
      default:
        return writes
          .flatMap((write) => [...sectorsOf(write)])
          .filter(() => random.below(2) === 0)
          .map((sector) => (random.below(16) === 0 ? tear(sector, random) : sector));
    }
  }

  /** A file with the bytes that programs see of this one, all of them on stable storage. */
  copy(): SimulatedInode {
    const copy = new SimulatedInode();
    copy.write(this.#cache.copy(), 0);
    copy.settle(copy.mark());
    return copy;
  }

  /** Turns over one bit of what is on stable storage, and of the cache unless it waits there to be written again. */
  flip(offset: number, bit: number): void {
    if (offset >= this.#durable.length) return;
    this.#durable.bytes[offset]! ^= 1 << bit;
    const dirty = this.#unsynced.some((write) => offset >= write.offset && offset < write.offset + write.bytes.length);
    if (!dirty) this.#cache.bytes[offset] = this.#durable.bytes[offset]!;
  }
}

/** The first part of a write. */
function tear(write: Write, random: SeededRandom): Write {
  return { offset: write.offset, bytes: write.bytes.subarray(0, random.below(write.bytes.length)) };
}
