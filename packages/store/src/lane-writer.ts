import { type Clock, codeOf, type DiskFile, type Log, messageOf, PAGE_BYTES, WebdfsError } from '@webdfs/base';
import { stampHead, writeHead } from './entry-format.ts';
import { MAX_COPIED_BODY_BYTES, MAX_SYNC_WRITE_BYTES } from './limits.ts';
import type { Logged } from './logged.ts';
import type { Volume, VolumeTable } from './volume-table.ts';

/** A write on this thread that took longer was throttled by the system: the pool writes for a while. */
const SLOW_WRITE_MS = 5;
const POOL_FOR_MS = 1_000;
const ARENA_BYTES = 1024 * 1024;

/**
 * Writes a lane's commits: gives entries their places, completes their heads, and lays heads, small bodies and padding out
 * in an arena, between which larger bodies go by reference.
 *
 * Pieces of blocks go past the page cache, where the file system does that: copying megabytes into fresh pages, from which
 * the system must write them at once, is the dearest part of storing them. A piece is given so much meta that its body begins
 * on a page border, and the arena keeps in step with the file; so all whole pages of such a commit leave in one direct write.
 * What lies before and behind them goes through the cache: no page of the file is written both ways by one commit, and the
 * one `fdatasync` that follows covers both.
 */
export class LaneWriter {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #volumes: Pick<VolumeTable, 'pages'>;
  /** One commit at a time uses it. */
  #arena: Buffer | undefined;
  #poolUntilMs = -1;

  constructor(options: { clock: Clock; log: Log; volumes: Pick<VolumeTable, 'pages'> }) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#volumes = options.volumes;
  }

  /** Writes entries one after another from `start` of the volume; returns where they end. @throws DISK_FULL, DISK_FAILED */
  async write(volume: Volume, entries: readonly Logged[], start: number): Promise<number> {
    const file = volume.file!;
    const direct = isDirect(entries) ? volume.direct : undefined;
    const buffers = this.#layOut(volume, entries, start, direct !== undefined);
    const total = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
    if (direct === undefined) await this.#writeAll(file, buffers, start);
    else await this.#writeDirect(volume, direct, buffers, start);
    return start + total;
  }

  #layOut(volume: Volume, entries: readonly Logged[], start: number, paged: boolean): Uint8Array[] {
    const { salt, id, durable } = volume;
    const buffers: Uint8Array[] = [];
    const arena = this.#room(entries);
    let place = start;
    let at = paged ? start % PAGE_BYTES : 0;
    let runFrom = at;
    for (const entry of entries) {
      const refers = entry.bodyBytes > MAX_COPIED_BODY_BYTES;
      if (paged && refers) entry.pad(toPage(place + entry.headBytes));
      entry.volume = id;
      entry.place = place;
      const { key, meta, sums, body, headBytes, bodyBytes } = entry;
      writeHead(arena, at, entry, { key, meta, sums, bodyBytes });
      stampHead(arena, at, headBytes, { salt, volume: id, place, durable });
      at += headBytes;
      if (refers) {
        const referred = body.subarray(0, paged ? bodyBytes - (bodyBytes % PAGE_BYTES) : bodyBytes);
        buffers.push(arena.subarray(runFrom, at), referred);
        runFrom = at;
        at += copy(body.subarray(referred.length), arena, at);
      } else at += copy(body, arena, at);
      const padding = entry.entryBytes - headBytes - bodyBytes;
      arena.fill(0, at, at + padding);
      at += padding;
      place += entry.entryBytes;
    }
    if (at > runFrom) buffers.push(arena.subarray(runFrom, at));
    return buffers;
  }

  #room(entries: readonly Logged[]): Buffer {
    let needed = PAGE_BYTES;
    for (const entry of entries) {
      needed += entry.headBytes + (entry.bodyBytes > MAX_COPIED_BODY_BYTES ? 2 * PAGE_BYTES : entry.bodyBytes + 8);
    }
    if (this.#arena === undefined || needed > this.#arena.length) {
      const { buffer, byteOffset, length } = this.#volumes.pages(Math.max(ARENA_BYTES, needed));
      this.#arena = Buffer.from(buffer, byteOffset, length);
    }
    return this.#arena;
  }

  /** The whole pages past the cache, the rest through it. */
  async #writeDirect(volume: Volume, direct: DiskFile, buffers: Uint8Array[], start: number): Promise<void> {
    const file = volume.file!;
    const before = toPage(start);
    const [first, rest] = split(buffers, before);
    const whole = rest.reduce((sum, buffer) => sum + buffer.length, 0);
    const [pages, last] = split(rest, whole - (whole % PAGE_BYTES));
    if (first.length > 0) await this.#writeAll(file, first, start);
    const from = start + before;
    const count = await this.#tryDirect(volume, direct, pages, from);
    const [, left] = split(pages, count);
    await this.#writeAll(file, [...left, ...last], from + count);
  }

  /** How much was written; nothing if the file system refuses, which is not asked again for this volume. */
  async #tryDirect(volume: Volume, direct: DiskFile, pages: Uint8Array[], from: number): Promise<number> {
    try {
      return await direct.writev(pages, from);
    } catch (error) {
      if (codeOf(error) !== 'UNSUPPORTED') throw error;
      this.#log.info('no direct writes here', { volume: volume.id, why: messageOf(error) });
      await volume.closeDirect();
      return 0;
    }
  }

  async #writeAll(file: DiskFile, buffers: Uint8Array[], offset: number): Promise<void> {
    const total = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
    let left = buffers;
    let done = 0;
    while (done < total) {
      const began = this.#clock.monotonic();
      const onThread = total <= MAX_SYNC_WRITE_BYTES && began >= this.#poolUntilMs;
      const count = onThread ? file.writevSync(left, offset + done) : await file.writev(left, offset + done);
      if (onThread && this.#clock.monotonic() - began > SLOW_WRITE_MS) this.#poolUntilMs = began + POOL_FOR_MS;
      if (count === 0) throw new WebdfsError('DISK_FULL', `write ${file.path}: nothing was written`);
      done += count;
      if (done < total) [, left] = split(left, count);
    }
  }
}

/** Worth a direct write, and fit for one: every body that goes by reference lies in pages. */
function isDirect(entries: readonly Logged[]): boolean {
  let found = false;
  for (const { bodyBytes, paged } of entries) {
    if (bodyBytes <= MAX_COPIED_BODY_BYTES) continue;
    if (!paged) return false;
    found = true;
  }
  return found;
}

/** From a place to the next page border. */
function toPage(place: number): number {
  return (PAGE_BYTES - (place % PAGE_BYTES)) % PAGE_BYTES;
}

function copy(bytes: Uint8Array, target: Uint8Array, at: number): number {
  target.set(bytes, at);
  return bytes.length;
}

/** The first `count` bytes of `buffers`, and the others. */
function split(buffers: readonly Uint8Array[], count: number): [Uint8Array[], Uint8Array[]] {
  const first: Uint8Array[] = [];
  const rest: Uint8Array[] = [];
  let left = count;
  for (const buffer of buffers) {
    const taken = Math.min(left, buffer.length);
    if (taken > 0) first.push(taken < buffer.length ? buffer.subarray(0, taken) : buffer);
    if (taken < buffer.length) rest.push(taken > 0 ? buffer.subarray(taken) : buffer);
    left -= taken;
  }
  return [first, rest];
}
