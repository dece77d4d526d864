import { chunkSums, concat, type PolicyId, toHex, WebdfsError } from '@webdfs/base';
import type { Piece } from '@webdfs/wire';
import type { BlockUpload } from './groups.ts';

/** Bytes of the largest piece that `readBlock` hands out. */
const PIECE_BYTES = 1_048_576;

/** A piece whose bytes belong to nobody else: nothing happens when it is released. */
function freePiece(bytes: Uint8Array): Piece {
  return { bytes, hold: () => undefined, release: () => undefined };
}

function stopIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new WebdfsError('CANCELLED', 'the caller gave up', { cause: signal.reason });
}

/** The blocks of `MemoryGroups`. `charge` counts bytes in and out, and refuses what does not fit. */
export class MemoryBlocks {
  readonly #blocks = new Map<string, Uint8Array>();
  readonly #charge: (bytes: number) => void;

  constructor(charge: (bytes: number) => void) {
    this.#charge = charge;
  }

  put(policy: PolicyId, id: Uint8Array, signal?: AbortSignal): BlockUpload {
    const name = `${policy} ${toHex(id)}`;
    let parts: Uint8Array[] = [];
    let size = 0;
    let over = false;
    const abort = (): void => {
      if (!over) this.#charge(-size);
      over = true;
      parts = [];
    };
    return {
      write: (bytes) => {
        stopIfAborted(signal);
        this.#charge(bytes.length);
        size += bytes.length;
        parts.push(bytes.slice());
        return undefined;
      },
      finish: async () => {
        await Promise.resolve();
        stopIfAborted(signal);
        if (over) throw new WebdfsError('CANCELLED', 'the block was given up');
        if (this.#blocks.has(name)) throw new WebdfsError('ALREADY_EXISTS', 'block ids are used once');
        over = true;
        const block = concat(parts);
        this.#blocks.set(name, block);
        return { size, sums: chunkSums(block) };
      },
      abort,
    };
  }

  async *read(
    policy: PolicyId,
    id: Uint8Array,
    { offset, length, signal }: { offset: number; length: number; signal?: AbortSignal },
  ): AsyncGenerator<Piece, void, undefined> {
    const block = this.#blocks.get(`${policy} ${toHex(id)}`);
    if (block === undefined)
      throw new WebdfsError('NOT_FOUND', `no block ${toHex(id)}`, { details: { what: 'block' } });
    if (offset < 0 || length < 0 || offset + length > block.length) {
      throw new WebdfsError('INVALID', `block has ${block.length} bytes, wanted ${length} at ${offset}`);
    }
    for (let at = offset; at < offset + length; at += PIECE_BYTES) {
      stopIfAborted(signal);
      yield freePiece(block.slice(at, Math.min(at + PIECE_BYTES, offset + length)));
    }
  }
}
