import { CHUNK_BYTES, codeOf, crc32c, type GroupKey, type PolicyId, WebdfsError } from '@webdfs/base';
import { groupOf, hashKey } from '@webdfs/placement';
import { decodePutBlockAnswer, encodePutBlock, MAX_BLOCK_BYTES, VERB } from '@webdfs/replica';
import type { Message, Outgoing, Piece } from '@webdfs/wire';
import type { BlockHeader, BlockUpload } from './groups.ts';
import { misdirected, passes, refusedAt, Retry, unavailable } from './retry.ts';
import { primaryLink, type RouterLimits, type RouterSeams } from './router-seams.ts';

/** Larger runs of bytes are sent as several pieces. */
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
  #replay: Uint8Array[] | undefined = [];
  #attempt: Attempt | undefined;
  #waiting: Promise<void> | undefined;
  #over = false;

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
    if (this.#replay !== undefined) {
      this.#replay.push(bytes);
      if (this.#size > REPLAY_BYTES) this.#replay = undefined;
    }
    const attempt = this.#attempt;
    if (attempt === undefined || attempt.failure !== undefined || this.#waiting !== undefined) {
      return this.#wait(this.#slowly(bytes, attempt));
    }
    const full = send(attempt.body, bytes);
    return full ? this.#wait(attempt.body.ready()) : undefined;
  }

  async finish(): Promise<{ size: number; sums: Uint32Array }> {
    await this.#waiting;
    const sums = this.#sums.finish();
    for (;;) {
      const attempt = this.#attempt ?? (await this.#open());
      try {
        if (attempt.failure !== undefined) throw attempt.failure.error;
        attempt.body.end();
        const answer = decodePutBlockAnswer(await attempt.answer);
        this.#over = true;
        if (answer.size !== this.#size || !equalSums(answer.sums, sums)) {
          throw unavailable('the block that was stored is not the one that was sent');
        }
        return { size: this.#size, sums };
      } catch (error) {
        await this.#again(error);
      }
    }
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#attempt?.body.cancel('upload aborted');
  }

  /** One promise at a time, remembered until it is settled, so that writes keep their order. */
  #wait(work: Promise<void>): Promise<void> {
    const waiting: Promise<void> = work.then(() => {
      if (this.#waiting === waiting) this.#waiting = undefined;
    });
    this.#waiting = waiting;
    return waiting;
  }

  async #slowly(bytes: Uint8Array, seen: Attempt | undefined): Promise<void> {
    await this.#waiting;
    for (;;) {
      const attempt = this.#attempt;
      // a new attempt sends all that is kept, these bytes included
      if (attempt === undefined) {
        await this.#open();
        return;
      }
      if (attempt !== seen && seen === undefined) return;
      if (attempt.failure === undefined) {
        if (send(attempt.body, bytes)) await attempt.body.ready();
        return;
      }
      await this.#again(attempt.failure.error);
    }
  }

  /** Finds a primary and sends it all that was kept so far. */
  async #open(): Promise<Attempt> {
    for (;;) {
      this.#retry.begin();
      try {
        const attempt = this.#start();
        this.#attempt = attempt;
        for (const bytes of this.#replay ?? []) {
          if (send(attempt.body, bytes)) await attempt.body.ready();
        }
        return attempt;
      } catch (error) {
        await this.#again(error);
      }
    }
  }

  #start(): Attempt {
    const { policy, id, header, signal } = this.#target;
    const group = blockGroup(this.#seams, policy, id);
    const message = encodePutBlock({ ...group, id, ...header }, this.#seams.map.view.revision);
    const options = { deadlineMs: this.#limits.blockMs, ...(signal && { signal }) };
    const { body, answer } = primaryLink(this.#seams, group).send(VERB.PUT_BLOCK, message, options);
    const attempt: Attempt = { body, answer, failure: undefined };
    answer.catch((error: unknown) => {
      attempt.failure = { error };
    });
    return attempt;
  }

  /** Returns if the upload may be tried again from its first byte. @throws what ends it */
  async #again(error: unknown): Promise<void> {
    this.#attempt?.body.cancel('tried again elsewhere');
    this.#attempt = undefined;
    if (this.#over) throw new WebdfsError('CANCELLED', 'the upload was aborted', { cause: error });
    const refused = misdirected(error) || codeOf(error) === 'BUSY' || codeOf(error) === 'NOT_SYNCED';
    if (!passes(error)) throw error;
    if (refused && this.#replay !== undefined) return await this.#retry.failed(error);
    this.#over = true;
    if (refusedAt(error) > 0) void this.#seams.map.readThrough(refusedAt(error)).catch(() => undefined);
    throw codeOf(error) === 'UNAVAILABLE' ? error : unavailable('the block could not be stored', error);
  }
}

/** True when the window is used up. */
function send(body: Outgoing, bytes: Uint8Array): boolean {
  let room = true;
  for (let offset = 0; offset < bytes.length; offset += PIECE_BYTES) {
    room = body.write(ownPiece(bytes.subarray(offset, offset + PIECE_BYTES)));
  }
  return !room;
}

function equalSums(a: Uint32Array, b: Uint32Array): boolean {
  return a.length === b.length && a.every((sum, i) => sum === b[i]);
}
