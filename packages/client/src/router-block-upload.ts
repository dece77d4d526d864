import { CHUNK_BYTES, codeOf, crc32c, type GroupKey, type PolicyId, WebdfsError } from '@webdfs/base';
import { groupOf, hashKey } from '@webdfs/placement';
import { decodePutBlockAnswer, encodePutBlock, MAX_BLOCK_BYTES, VERB } from '@webdfs/replica';
import type { Message, Outgoing, Piece } from '@webdfs/wire';
import type { BlockHeader, BlockUpload } from './groups.ts';
import { misdirected, passes, refusedAt, Retry, unavailable } from './retry.ts';
import { primaryLink, type RouterLimits, type RouterSeams } from './router-seams.ts';

/** Larger runs of bytes are sent as several pieces, bytes. */
const PIECE_BYTES = 262_144;
/** Bytes of an upload that are kept so that a node that was asked by mistake can be replaced by the right one. */
const REPLAY_BYTES = 1_048_576;

/** CRC-32C of each 64 KiB of what passes by. */
export class RunningSums {
  readonly #sums: number[] = [];
  #current = 0;
  #filled = 0;

  add(bytes: Uint8Array): void {
    let offset = 0;
    while (offset < bytes.length) {
      const count = Math.min(CHUNK_BYTES - this.#filled, bytes.length - offset);
      this.#current = crc32c(bytes.subarray(offset, offset + count), this.#current);
      this.#filled += count;
      offset += count;
      if (this.#filled === CHUNK_BYTES) this.#close();
    }
  }

  finish(): Uint32Array {
    if (this.#filled > 0) this.#close();
    return Uint32Array.from(this.#sums);
  }

  #close(): void {
    this.#sums.push(this.#current);
    this.#current = 0;
    this.#filled = 0;
  }
}

/** A piece whose bytes nobody else waits for. */
function ownPiece(bytes: Uint8Array): Piece {
  return { bytes, hold: () => undefined, release: () => undefined };
}

interface BlockTarget {
  readonly policy: PolicyId;
  readonly id: Uint8Array;
  readonly header: BlockHeader;
  readonly signal?: AbortSignal;
}

/** Blocks have a group of their own. */
export function blockGroup(seams: RouterSeams, policy: PolicyId, id: Uint8Array): GroupKey {
  return { policy, group: groupOf(hashKey(id).high, seams.map.view.map.groupBits) };
}

/** One try: the body under way, and the answer that may come before its end. */
interface Attempt {
  readonly body: Outgoing;
  readonly answer: Promise<Message>;
  /** The window is used up: `ready` comes before the next piece. */
  full: boolean;
  failure: { readonly error: unknown } | undefined;
}

/**
 * A block on its way to the primary of its group, which passes it on to the members while it arrives.
 *
 * A node that refuses because it is not the primary is replaced by the right one as long as all bytes so far are at hand
 * (`REPLAY_BYTES`). Any other failure ends the upload with UNAVAILABLE: what was sent is gone, and the block that may have
 * been stored is one that nothing names.
 */
export class RoutedBlockUpload implements BlockUpload {
  readonly #seams: RouterSeams;
  readonly #limits: RouterLimits;
  readonly #target: BlockTarget;
  readonly #retry: Retry;
  readonly #sums = new RunningSums();
  #size = 0;
  /** Bytes not yet sent, and before them (up to `#next`) those sent but kept. */
  #parts: Uint8Array[] = [];
  #next = 0;
  /** All bytes since the first are in `#parts`. */
  #whole = true;
  #attempt: Attempt | undefined;
  #pumping: Promise<void> | undefined;
  #fatal: { readonly error: unknown } | undefined;

  constructor(seams: RouterSeams, limits: RouterLimits, target: BlockTarget) {
    this.#seams = seams;
    this.#limits = limits;
    this.#target = target;
    this.#retry = new Retry(seams, limits, target.signal);
  }

  /** @throws TOO_LARGE beyond `MAX_BLOCK_BYTES` */
  write(bytes: Uint8Array): Promise<void> | undefined {
    if (this.#size + bytes.length > MAX_BLOCK_BYTES) {
      throw new WebdfsError('TOO_LARGE', `block has more than ${MAX_BLOCK_BYTES} bytes`);
    }
    this.#sums.add(bytes);
    this.#size += bytes.length;
    for (let offset = 0; offset < bytes.length; offset += PIECE_BYTES) {
      this.#parts.push(bytes.subarray(offset, offset + PIECE_BYTES));
    }
    const attempt = this.#attempt;
    // the common case: nothing waits, so nothing is promised
    if (attempt !== undefined && attempt.failure === undefined && this.#pumping === undefined) this.#send(attempt);
    return this.#next < this.#parts.length || attempt?.full === true ? this.#pump() : undefined;
  }

  async finish(): Promise<{ size: number; sums: Uint32Array }> {
    const sums = this.#sums.finish();
    for (;;) {
      const attempt = await this.#sentAll();
      try {
        attempt.body.end();
        const answer = decodePutBlockAnswer(await attempt.answer);
        if (answer.size === this.#size && equalSums(answer.sums, sums)) return { size: this.#size, sums };
        throw unavailable('the block that was stored is not the one that was sent');
      } catch (error) {
        await this.#again(error);
      }
    }
  }

  abort(): void {
    this.#fatal ??= { error: new WebdfsError('CANCELLED', 'the upload was aborted') };
    this.#attempt?.body.cancel('upload aborted');
  }

  async #sentAll(): Promise<Attempt> {
    for (;;) {
      await this.#pump();
      const attempt = this.#attempt;
      if (attempt !== undefined && this.#next === this.#parts.length) return attempt;
    }
  }

  /** Sends what waits; one at a time. */
  #pump(): Promise<void> {
    this.#pumping ??= this.#run().finally(() => {
      this.#pumping = undefined;
    });
    return this.#pumping;
  }

  async #run(): Promise<void> {
    for (;;) {
      try {
        if (this.#fatal !== undefined) throw this.#fatal.error;
        const attempt = (this.#attempt ??= this.#start());
        if (attempt.failure !== undefined) throw attempt.failure.error;
        if (attempt.full) await attempt.body.ready();
        attempt.full = false;
        this.#send(attempt);
        if (this.#next === this.#parts.length && !attempt.full) return;
      } catch (error) {
        await this.#again(error);
      }
    }
  }

  /** Parts until the window is used up or none is left. */
  #send(attempt: Attempt): void {
    while (this.#next < this.#parts.length && !attempt.full) {
      attempt.full = !attempt.body.write(ownPiece(this.#parts[this.#next++]!));
    }
    if (this.#size <= REPLAY_BYTES) return;
    this.#whole = false;
    this.#parts = this.#parts.slice(this.#next);
    this.#next = 0;
  }

  #start(): Attempt {
    this.#retry.begin();
    const { policy, id, header, signal } = this.#target;
    const group = blockGroup(this.#seams, policy, id);
    const message = encodePutBlock({ ...group, id, ...header }, this.#seams.map.view.revision);
    const options = { deadlineMs: this.#limits.blockMs, ...(signal && { signal }) };
    const { body, answer } = primaryLink(this.#seams, group).send(VERB.PUT_BLOCK, message, options);
    const attempt: Attempt = { body, answer, full: false, failure: undefined };
    answer.catch((error: unknown) => {
      attempt.failure = { error };
    });
    return attempt;
  }

  /** Returns if the upload may be tried again from its first byte. @throws what ends it */
  async #again(error: unknown): Promise<void> {
    const cause = await this.#why(error);
    this.#attempt = undefined;
    this.#next = 0;
    try {
      if (this.#fatal !== undefined) throw this.#fatal.error;
      if (!passes(cause)) throw cause;
      if (this.#whole && surelyNotDone(cause)) return await this.#retry.failed(cause);
      const revision = refusedAt(cause);
      if (revision > 0) void this.#seams.map.readThrough(revision).catch(() => undefined);
      throw codeOf(cause) === 'UNAVAILABLE' ? cause : unavailable('the block could not be stored', cause);
    } catch (final) {
      this.#fatal = { error: final };
      throw final;
    }
  }

  /** A body that breaks off does so because of the answer, which says why. */
  async #why(error: unknown): Promise<unknown> {
    const attempt = this.#attempt;
    if (attempt === undefined) return error;
    attempt.body.cancel('given up');
    const refusal: unknown = await attempt.answer.then(
      () => undefined,
      (why: unknown) => why,
    );
    return refusal === undefined || codeOf(refusal) === 'CANCELLED' ? error : refusal;
  }
}

/** The receiver refused before it took the block. */
function surelyNotDone(error: unknown): boolean {
  return misdirected(error) || codeOf(error) === 'BUSY' || codeOf(error) === 'NOT_SYNCED';
}

function equalSums(a: Uint32Array, b: Uint32Array): boolean {
  return a.length === b.length && a.every((sum, i) => sum === b[i]);
}
