import { CHUNK_BYTES, chunkSums, crc32c, EMPTY, plain, type Reader, WebdfsError, type Writer } from '@webdfs/base';

/**
 * The bytes attached to a message, read as one run whatever pieces they arrived in. A section that lies within one piece
 * is a view of it, so that a body is not copied on its way to the disk.
 */
export class Attachment {
  readonly #pieces: readonly Uint8Array[];
  #piece = 0;
  #offset = 0;

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces.map(plain);
  }

  /** The next `length` bytes. @throws CORRUPT if there are fewer */
  take(length: number): Uint8Array {
    if (length === 0) return EMPTY;
    this.#skipEmpty();
    const piece = this.#pieces[this.#piece];
    if (piece !== undefined && piece.length - this.#offset >= length) {
      const view = this.#offset === 0 && piece.length === length ? piece : this.#view(piece, length);
      this.#offset += length;
      return view;
    }
    return this.#join(length);
  }

  /** @throws CORRUPT if bytes are left over */
  end(): void {
    this.#skipEmpty();
    if (this.#piece < this.#pieces.length) throw new WebdfsError('CORRUPT', 'bytes after the end of the attachment');
  }

  #view(piece: Uint8Array, length: number): Uint8Array {
    return piece.subarray(this.#offset, this.#offset + length);
  }

  #skipEmpty(): void {
    while (this.#piece < this.#pieces.length && this.#offset === this.#pieces[this.#piece]!.length) {
      this.#piece++;
      this.#offset = 0;
    }
  }

  #join(length: number): Uint8Array {
    let left = -this.#offset;
    for (let i = this.#piece; i < this.#pieces.length; i++) left += this.#pieces[i]!.length;
    if (left < length) throw new WebdfsError('CORRUPT', `${Math.max(0, left)} attached bytes, ${length} announced`);
    const whole = new Uint8Array(length);
    let filled = 0;
    while (filled < length) {
      this.#skipEmpty();
      const piece = this.#pieces[this.#piece]!;
      const count = Math.min(length - filled, piece.length - this.#offset);
      whole.set(this.#view(piece, count), filled);
      this.#offset += count;
      filled += count;
    }
    return whole;
  }
}

/** Announces a section in the head: u32 length and one CRC-32C. */
export function putSection(head: Writer, bytes: Uint8Array): void {
  head.u32(bytes.length).u32(crc32c(bytes));
}

/** The section announced by `putSection`, verified. @throws CORRUPT, TOO_LARGE */
export function takeSection(head: Reader, attachment: Attachment, limit: number): Uint8Array {
  const length = head.u32();
  const sum = head.u32();
  if (length > limit) throw new WebdfsError('TOO_LARGE', `section has ${length} bytes, limit ${limit}`);
  const bytes = attachment.take(length);
  if (crc32c(bytes) !== sum) throw new WebdfsError('CORRUPT', `section of ${length} bytes has another checksum`);
  return bytes;
}

/** Announces a body: u32 length and the CRC-32C of each 64 KiB. */
export function putBody(head: Writer, bytes: Uint8Array, sums: Uint32Array = chunkSums(bytes)): void {
  head.u32(bytes.length);
  for (const sum of sums) head.u32(sum);
}

/** The body announced by `putBody`, verified, with its sums. @throws CORRUPT, TOO_LARGE */
export function takeBody(head: Reader, attachment: Attachment, limit: number): { body: Uint8Array; sums: Uint32Array } {
  const length = head.u32();
  if (length > limit) throw new WebdfsError('TOO_LARGE', `body has ${length} bytes, limit ${limit}`);
  const sums = takeSums(head, Math.ceil(length / CHUNK_BYTES));
  const body = attachment.take(length);
  for (let i = 0; i < sums.length; i++) {
    const chunk = sums.length === 1 ? body : body.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES);
    if (crc32c(chunk) !== sums[i]) throw new WebdfsError('CORRUPT', `chunk ${i} of the body has another checksum`);
  }
  return { body, sums };
}

/** `count` checksums of u32; the caller has bounded `count`. */
export function takeSums(head: Reader, count: number): Uint32Array {
  if (head.left < count * 4) throw new WebdfsError('CORRUPT', `${count} checksums announced, ${head.left} bytes left`);
  const sums = new Uint32Array(count);
  for (let i = 0; i < count; i++) sums[i] = head.u32();
  return sums;
}
