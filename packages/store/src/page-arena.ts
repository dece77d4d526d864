import { assert, CHUNK_BYTES } from '@webdfs/base';

const REGION_BYTES = 8 * 1024 * 1024;

interface Region {
  readonly memory: Uint8Array;
  /** One byte a chunk: 1 is taken. */
  readonly taken: Uint8Array;
}

/**
 * Allots the memory of all pieces on their way to a disk, in whole chunks, from regions that begin on page borders: direct
 * writes come from there, and what is used again costs neither zeroing nor page faults. First fit, so that little is touched.
 */
export class PageArena {
  readonly #pages: (bytes: number) => Uint8Array;
  readonly #most: number;
  readonly #regions: Region[] = [];
  #made = 0;
  #used = 0;

  /** @param options.most  bytes of all regions; a multiple of a chunk */
  constructor(options: { most: number; pages: (bytes: number) => Uint8Array }) {
    assert(options.most % CHUNK_BYTES === 0, 'an arena is made of chunks');
    this.#most = options.most;
    this.#pages = options.pages;
  }

  get used(): number {
    return this.#used;
  }

  /** So many bytes (whole chunks, at most a region), or as many as lie together if it is full of holes; undefined if none are left. */
  take(bytes: number): Uint8Array | undefined {
    let best: { region: Region; from: number; count: number } | undefined;
    const wanted = bytes / CHUNK_BYTES;
    for (const region of this.#regions) {
      const { from, count } = longestRun(region.taken, wanted);
      if (count > (best?.count ?? 0)) best = { region, from, count };
      if (count === wanted) break;
    }
    if (best?.count !== wanted && this.#made < this.#most) {
      const region = this.#grow();
      best = { region, from: 0, count: Math.min(wanted, region.taken.length) };
    }
    if (best === undefined) return undefined;
    const { region, from, count } = best;
    region.taken.fill(1, from, from + count);
    this.#used += count * CHUNK_BYTES;
    return region.memory.subarray(from * CHUNK_BYTES, (from + count) * CHUNK_BYTES);
  }

  /** Takes back what `take` gave. */
  giveBack(part: Uint8Array): void {
    const region = this.#regions.find(({ memory }) => memory.buffer === part.buffer);
    assert(region !== undefined, 'memory goes back to where it came from');
    const from = (part.byteOffset - region.memory.byteOffset) / CHUNK_BYTES;
    const until = from + part.length / CHUNK_BYTES;
    assert(region.taken[from] === 1 && region.taken[until - 1] === 1, 'memory goes back once');
    region.taken.fill(0, from, until);
    this.#used -= part.length;
  }

  #grow(): Region {
    const bytes = Math.min(REGION_BYTES, this.#most - this.#made);
    const region: Region = { memory: this.#pages(bytes), taken: new Uint8Array(bytes / CHUNK_BYTES) };
    this.#regions.push(region);
    this.#made += bytes;
    return region;
  }
}

/** The first run of `wanted` free chunks, else the longest there is. */
function longestRun(taken: Uint8Array, wanted: number): { from: number; count: number } {
  let best = { from: 0, count: 0 };
  for (let from = taken.indexOf(0); from >= 0;) {
    const end = taken.indexOf(1, from);
    const count = Math.min(wanted, (end < 0 ? taken.length : end) - from);
    if (count > best.count) best = { from, count };
    if (count === wanted || end < 0) break;
    from = taken.indexOf(0, end);
  }
  return best;
}
