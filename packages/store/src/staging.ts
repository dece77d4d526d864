import { assert, CHUNK_BYTES, type Clock, crc32c, EMPTY, type GroupKey, type Random, WebdfsError } from '@webdfs/base';
import type { Applier, Tables } from './applier.ts';
import { BLOCK_ID_BYTES, KIND } from './entry.ts';
import { ungrouped } from './entry-format.ts';
import { packPieceKey } from './index-rows.ts';
import type { Lane } from './lane.ts';
import { MAX_BLOCK_BYTES, MAX_PIECE_BYTES, MAX_STAGING_BYTES } from './limits.ts';
import { Logged } from './logged.ts';
import { PageArena } from './page-arena.ts';
import type { StagedBlock } from './staged-table.ts';
import type { Staging } from './store.ts';
import { copyOf } from './plain-bytes.ts';

/** Memory for the pieces of all streams together: `MAX_STAGING_BYTES`. */
export class StagingBudget {
  readonly #most: number;
  readonly #arena: PageArena;
  #streams = 0;
  #waiting: (() => void)[] = [];

  /** @param pages  where the memory comes from: `Disk.pages` */
  constructor(pages: (bytes: number) => Uint8Array, most = MAX_STAGING_BYTES) {
    this.#most = most;
    this.#arena = new PageArena({ most, pages });
  }

  get used(): number {
    return this.#arena.used;
  }

  open(): void {
    this.#streams += 1;
  }

  close(): void {
    this.#streams -= 1;
  }

  /** A buffer for a piece, smaller the more streams share the budget; undefined if none is left now. */
  take(): Uint8Array | undefined {
    const share = this.#most / (2 * Math.max(1, this.#streams));
    return this.#arena.take(
      Math.min(MAX_PIECE_BYTES, Math.max(CHUNK_BYTES, Math.floor(share / CHUNK_BYTES) * CHUNK_BYTES)),
    );
  }

  giveBack(buffer: Uint8Array): void {
    this.#arena.giveBack(buffer);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when a buffer has come back. */
  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

export interface StagerOptions {
  readonly tables: Tables;
  readonly applier: Applier;
  readonly bulk: Lane;
  readonly budget: StagingBudget;
  readonly clock: Clock;
  readonly random: Random;
  /** @throws DISK_FULL */
  readonly checkSpace: () => void;
}

/** Begins a block's stream. Its generation tells its pieces from those of any other try. */
export function openStaging(options: StagerOptions, group: GroupKey, id: Uint8Array): Staging {
  if (id.length !== BLOCK_ID_BYTES) throw new WebdfsError('INVALID', `a block id has ${BLOCK_ID_BYTES} bytes`);
  const block: StagedBlock = {
    group: { policy: group.policy, group: group.group },
    id: copyOf(id),
    generation: new DataView(options.random.bytes(4).buffer).getUint32(0),
    pieces: [],
    whole: undefined,
    named: 0,
    sinceMs: options.clock.now(),
  };
  options.tables.staged.add(block);
  return new BlockStaging(options, block);
}

/** One block on its way in: a buffer fills while the one before is being written, 2 MiB at most. */
class BlockStaging implements Staging {
  readonly #options: StagerOptions;
  readonly #block: StagedBlock;
  readonly #sums: number[] = [];
  #buffer: Uint8Array | undefined;
  #filled = 0;
  /** Bytes of the block before the buffer. */
  #offset = 0;
  #inFlight = 0;
  #wake: (() => void)[] = [];
  #failure: unknown;
  #closed = false;
  #writing = false;

  constructor(options: StagerOptions, block: StagedBlock) {
    this.#options = options;
    this.#block = block;
    options.budget.open();
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    assert(!this.#writing, 'one write of a stream at a time');
    let taken = 0;
    try {
      this.#check(bytes.length);
      taken = this.#fill(bytes);
    } catch (error) {
      return Promise.reject(error);
    }
    return taken === bytes.length ? undefined : this.#writeRest(copyOf(bytes, taken));
  }

  async #writeRest(bytes: Uint8Array): Promise<void> {
    this.#writing = true;
    try {
      let left = bytes;
      while (left.length > 0) {
        await this.#roomSoon();
        this.#check(left.length);
        left = left.subarray(this.#fill(left));
      }
    } finally {
      this.#writing = false;
    }
  }

  /** Copies what fits without waiting; returns how much that was. */
  #fill(bytes: Uint8Array): number {
    let taken = 0;
    while (taken < bytes.length) {
      if (this.#buffer === undefined) {
        if (this.#inFlight > 0) return taken;
        this.#buffer = this.#options.budget.take();
        if (this.#buffer === undefined) return taken;
      }
      const count = Math.min(bytes.length - taken, this.#buffer.length - this.#filled);
      this.#buffer.set(bytes.subarray(taken, taken + count), this.#filled);
      this.#filled += count;
      taken += count;
      if (this.#filled === this.#buffer.length) this.#cutPiece();
    }
    return taken;
  }

  /** Until the piece in flight is written, or memory has come back. */
  async #roomSoon(): Promise<void> {
    if (this.#inFlight > 0) await new Promise<void>((resolve) => this.#wake.push(resolve));
    else if (this.#buffer === undefined) {
      this.#buffer = this.#options.budget.take();
      if (this.#buffer === undefined) await this.#options.budget.wait();
    }
  }

  #check(more: number): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#closed) throw new WebdfsError('CANCELLED', 'the block is finished or was aborted');
    if (this.#offset + this.#filled + more > MAX_BLOCK_BYTES) {
      throw new WebdfsError('TOO_LARGE', `a block has at most ${MAX_BLOCK_BYTES} bytes`);
    }
    this.#options.checkSpace();
  }

  /** Hands what is in the buffer to the lane. */
  #cutPiece(): void {
    const buffer = this.#buffer!;
    const body = buffer.subarray(0, this.#filled);
    const sums = new Uint32Array(Math.ceil(body.length / CHUNK_BYTES));
    for (let i = 0; i < sums.length; i++) sums[i] = crc32c(body.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES));
    this.#sums.push(...sums);
    const { policy, group } = this.#block.group;
    const tenure = this.#options.tables.groups.need(this.#block.group).tenure;
    const fields = { ...ungrouped(KIND.PIECE, this.#options.clock.now()), policy, group, tenure };
    const key = packPieceKey({ ...this.#block, offset: this.#offset });
    const piece = new Logged(fields, { key, meta: EMPTY, body, sums });
    piece.paged = true;
    this.#offset += body.length;
    this.#buffer = undefined;
    this.#filled = 0;
    this.#inFlight += 1;
    let returned = false;
    const done = (): void => {
      if (returned) return;
      returned = true;
      this.#options.budget.giveBack(buffer);
      this.#inFlight -= 1;
      this.#wakeAll();
    };
    piece.answer = {
      written: done,
      durable: () => this.#keep(piece),
      failed: (error) => {
        this.#failure ??= error;
        done();
      },
    };
    this.#options.bulk.push(piece);
  }

  /** A piece is durable: it counts, unless the block was given up meanwhile. */
  #keep(piece: Logged): void {
    const { tables, applier } = this.#options;
    piece.body = EMPTY;
    if (tables.staged.get(this.#block.id, this.#block.generation) === undefined) applier.settle(piece);
    else applier.applyPiece(this.#block, piece);
  }

  #wakeAll(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const resolve of wake) resolve();
  }

  async finish(): Promise<{ size: number; sums: Uint32Array }> {
    this.#check(0);
    if (this.#filled > 0) this.#cutPiece();
    this.#close();
    while (this.#inFlight > 0) await new Promise<void>((resolve) => this.#wake.push(resolve));
    if (this.#failure !== undefined) {
      this.#options.applier.dropStaged(this.#block);
      throw this.#failure;
    }
    const whole = { size: this.#offset, sums: Uint32Array.from(this.#sums) };
    this.#block.whole = whole;
    return whole;
  }

  abort(): void {
    this.#close();
    this.#failure ??= new WebdfsError('CANCELLED', 'the block was aborted');
    if (this.#block.named === 0) this.#options.applier.dropStaged(this.#block);
    this.#wakeAll();
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.budget.close();
    if (this.#buffer !== undefined) this.#options.budget.giveBack(this.#buffer);
    this.#buffer = undefined;
  }
}
