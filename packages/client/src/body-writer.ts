import { createHash, type Hash, hash } from 'node:crypto';
import { type Clock, concat, EMPTY, type PolicyId, type Random, WebdfsError } from '@webdfs/base';
import type { Layout } from '@webdfs/replica';
import type { BlockHeader, BlockUpload, Groups } from './groups.ts';
import { blockId, freshAttempt } from './ids.ts';
import { BLOCKS_UNDER_WAY } from './limits.ts';
import type { ByteSource, ObjectFacts, PutOptions } from './object-store.ts';

/** Where bodies go. */
export interface BodyTarget {
  readonly groups: Groups;
  readonly policy: PolicyId;
  readonly clock: Clock;
  readonly random: Random;
  readonly blockBytes: number;
  /** Larger bodies are cut into blocks; −1: all are. */
  readonly inlineBytes: number;
  readonly maxBytes: number;
}

export interface BodyOptions {
  readonly header: BlockHeader;
  readonly size?: number;
  /** Asked when all bytes have come, before the last block is committed: a body of one block that is refused leaves none. */
  readonly verify?: PutOptions['verify'];
  readonly signal?: AbortSignal;
}

/** A body that has come whole: stored in blocks that nothing names yet, or in hand. */
export interface StoredBody {
  readonly layout: Extract<Layout, { type: 'inline' | 'blocks' }>;
  /** The bytes, when inline. */
  readonly inline: Uint8Array;
  readonly size: number;
  readonly md5: Uint8Array;
  /** What `verify` added. */
  readonly learned: Partial<ObjectFacts> | undefined;
}

function md5Of(bytes: Uint8Array): Uint8Array {
  return hash('md5', bytes, 'buffer');
}

function checkAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new WebdfsError('CANCELLED', 'the caller gave up', { cause: signal.reason });
}

function incomplete(size: number, expected: number): WebdfsError {
  return new WebdfsError('INCOMPLETE_BODY', `body has ${size > expected ? 'more than' : size} of ${expected} bytes`, {
    details: { expected },
  });
}

/** Cuts what it is given into blocks. At most `BLOCKS_UNDER_WAY` are not yet committed. */
class BlockCutter {
  readonly #target: BodyTarget;
  readonly #options: BodyOptions;
  readonly attempt: Uint8Array;
  readonly #finishing: Promise<void>[] = [];
  readonly #uploads = new Set<BlockUpload>();
  #current: BlockUpload | undefined;
  #room = 0;
  #count = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(target: BodyTarget, options: BodyOptions) {
    this.#target = target;
    this.#options = options;
    this.attempt = freshAttempt(target.clock, target.random);
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let offset = 0; offset < bytes.length;) {
      if (this.#failure) throw this.#failure.error;
      // a full block stays open until more comes: it may be the last one
      if (this.#room === 0) this.#close();
      this.#current ??= await this.#open();
      const taken = bytes.subarray(offset, offset + this.#room);
      await this.#current.write(taken);
      offset += taken.length;
      this.#room -= taken.length;
    }
  }

  async finish(): Promise<void> {
    this.#close();
    await Promise.all(this.#finishing);
    if (this.#failure) throw this.#failure.error;
  }

  abort(): void {
    for (const upload of this.#uploads) upload.abort();
    this.#uploads.clear();
  }

  async #open(): Promise<BlockUpload> {
    while (this.#finishing.length > BLOCKS_UNDER_WAY - 1) {
      await this.#finishing.shift();
      if (this.#failure) throw this.#failure.error;
    }
    const { groups, policy, blockBytes } = this.#target;
    const upload = groups.putBlock(
      policy,
      blockId(this.attempt, this.#count++),
      this.#options.header,
      this.#options.signal,
    );
    this.#uploads.add(upload);
    this.#room = blockBytes;
    return upload;
  }

  /** Lets the block be committed while the next one fills. */
  #close(): void {
    const upload = this.#current;
    if (upload === undefined) return;
    this.#current = undefined;
    this.#finishing.push(
      upload.finish().then(
        () => void this.#uploads.delete(upload),
        (error: unknown) => void (this.#failure ??= { error }),
      ),
    );
  }
}

/** A body on its way in: small until it is not. */
class BodyIntake {
  readonly #target: BodyTarget;
  readonly #options: BodyOptions;
  readonly #limit: number;
  /** Bytes kept while they may still fit into the record. */
  #held: Uint8Array[] = [];
  #blocks: { readonly cutter: BlockCutter; readonly md5: Hash } | undefined;
  #size = 0;

  constructor(target: BodyTarget, options: BodyOptions) {
    this.#target = target;
    this.#options = options;
    this.#limit = options.size ?? target.maxBytes;
    if (this.#limit > target.maxBytes) throw tooLarge(target);
    if (options.size !== undefined && options.size > target.inlineBytes) this.#blocks = this.#cut();
  }

  #cut(): { cutter: BlockCutter; md5: Hash } {
    return { cutter: new BlockCutter(this.#target, this.#options), md5: createHash('md5') };
  }

  async take(bytes: Uint8Array): Promise<void> {
    checkAborted(this.#options.signal);
    this.#size += bytes.length;
    if (this.#size > this.#limit) throw this.#tooMuch();
    if (this.#blocks === undefined && this.#size <= this.#target.inlineBytes) {
      this.#held.push(bytes);
      return;
    }
    this.#blocks ??= this.#cut();
    for (const chunk of this.#held) await this.#pass(chunk);
    this.#held = [];
    await this.#pass(bytes);
  }

  async #pass(bytes: Uint8Array): Promise<void> {
    this.#blocks!.md5.update(bytes);
    await this.#blocks!.cutter.write(bytes);
  }

  #tooMuch(): WebdfsError {
    const { size } = this.#options;
    return size === undefined ? tooLarge(this.#target) : incomplete(this.#size, size);
  }

  async finish(): Promise<StoredBody> {
    const { size: expected, signal } = this.#options;
    const size = this.#size;
    if (expected !== undefined && size !== expected) throw incomplete(size, expected);
    if (this.#blocks === undefined && size <= this.#target.inlineBytes) {
      const inline = this.#held.length === 1 ? this.#held[0]! : concat(this.#held);
      const md5 = md5Of(inline);
      return { layout: { type: 'inline' }, inline, size, md5, learned: this.#options.verify?.(md5, size) };
    }
    const { cutter, md5: running } = (this.#blocks ??= this.#cut());
    const md5 = new Uint8Array(running.digest());
    const learned = this.#options.verify?.(md5, size);
    await cutter.finish();
    checkAborted(signal);
    return {
      layout: { type: 'blocks', attempt: cutter.attempt, blockBytes: this.#target.blockBytes },
      inline: EMPTY,
      size,
      md5,
      learned,
    };
  }

  abort(): void {
    this.#blocks?.cutter.abort();
  }
}

function tooLarge({ maxBytes }: BodyTarget): WebdfsError {
  return new WebdfsError('TOO_LARGE', `body is larger than ${maxBytes} bytes`, {
    details: { what: 'body', limit: maxBytes },
  });
}

/**
 * Takes a whole body: small ones stay in memory for their record, larger ones become blocks, with MD5 over all bytes. A
 * body of unknown length is small until it is not. When this throws, no block is left under way.
 *
 * @throws INCOMPLETE_BODY, TOO_LARGE, CANCELLED, what the source throws, and the errors of `Groups`
 */
export async function storeBody(target: BodyTarget, body: ByteSource, options: BodyOptions): Promise<StoredBody> {
  const intake = new BodyIntake(target, options);
  try {
    if (body instanceof Uint8Array) await intake.take(body);
    else for await (const bytes of body) await intake.take(bytes);
    return await intake.finish();
  } catch (error) {
    intake.abort();
    throw error;
  }
}
