import { createHash, type Hash, hash } from 'node:crypto';
import type { Framing } from '../http/body.ts';
import { MAX_AWS_CHUNK, MAX_CHUNK_LINE, MAX_TRAILER_BYTES } from '../http/limits.ts';
import { Refusal } from '../refusal.ts';
import type { ChunkSigning } from './authenticate.ts';
import { EMPTY_SHA256, sameHex } from './sigv4.ts';

export interface AwsChunkedOptions {
  /** Of the object's bytes, as announced. */
  readonly decodedLength: number;
  /** Undefined: chunks are not signed. */
  readonly signing: ChunkSigning | undefined;
  /** Names announced in `x-amz-trailer`, lower case; undefined if the framing has no trailer. */
  readonly trailers: readonly string[] | undefined;
}

const CR = 13;
const LF = 10;
const TRAILER_SIGNATURE = 'x-amz-trailer-signature';

type State = 'line' | 'data' | 'data-end' | 'trailer' | 'done';

const LINE = /^([0-9a-f]{1,8})(?:;chunk-signature=([0-9a-f]{64}))?$/i;

/**
 * The `aws-chunked` framing as a machine over what arrives; it hands on views and joins nothing.
 *
 * ```
 * body    = *( size [";chunk-signature=" 64hex] CRLF data CRLF ) "0" [";chunk-signature=" 64hex] CRLF trailer CRLF
 * trailer = *( name ":" value CRLF )
 * ```
 *
 * A chunk's bytes are passed on before its signature is known; a wrong one fails the body, and a body that fails stores
 * nothing. Source: "Transferring payload in multiple chunks", Amazon S3 API reference.
 */
export class AwsChunked implements Framing {
  readonly trailers = new Map<string, string>();
  readonly #options: AwsChunkedOptions;
  #state: State = 'line';
  #line = '';
  /** Bytes of the present chunk still to come. */
  #left = 0;
  #decoded = 0;
  #trailerBytes = 0;
  /** The trailer's lines as they are signed. */
  #signedTrailer = '';
  #trailerSignature: string | undefined;
  #last = false;
  #signature: string;
  #claimed = '';
  #hash: Hash | undefined;

  constructor(options: AwsChunkedOptions) {
    this.#options = options;
    this.#signature = options.signing?.seed ?? '';
  }

  push(chunk: Uint8Array, emit: (piece: Uint8Array) => void): void {
    let offset = 0;
    while (offset < chunk.length) {
      switch (this.#state) {
        case 'data':
          offset = this.#data(chunk, offset, emit);
          break;
        case 'line':
        case 'data-end':
        case 'trailer':
          offset = this.#text(chunk, offset);
          break;
        case 'done':
          throw malformed('Bytes follow the last chunk.');
      }
    }
  }

  end(): void {
    if (this.#state !== 'done') throw new Refusal('IncompleteBody', 'The body ended inside its chunked framing.');
  }

  #data(chunk: Uint8Array, offset: number, emit: (piece: Uint8Array) => void): number {
    const end = Math.min(chunk.length, offset + this.#left);
    const piece = chunk.subarray(offset, end);
    this.#hash?.update(piece);
    this.#left -= piece.length;
    if (this.#left === 0) {
      this.#checkChunk();
      this.#state = 'data-end';
    }
    emit(piece);
    return end;
  }

  /** Takes bytes up to the end of a line; returns where it stopped. */
  #text(chunk: Uint8Array, offset: number): number {
    const end = chunk.indexOf(LF, offset);
    const stop = end < 0 ? chunk.length : end + 1;
    const limit = this.#state === 'trailer' ? MAX_TRAILER_BYTES : MAX_CHUNK_LINE;
    if (this.#line.length + stop - offset > limit) throw malformed('A line of the chunked framing is too long.');
    const bytes = chunk.subarray(offset, stop);
    this.#line += Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    if (end < 0) return stop;
    const line = this.#line;
    this.#line = '';
    if (line.charCodeAt(line.length - 2) !== CR) throw malformed('A line of the chunked framing does not end in CRLF.');
    this.#onLine(line.slice(0, -2));
    return stop;
  }

  #onLine(line: string): void {
    if (this.#state === 'trailer') return this.#onTrailer(line);
    if (this.#state === 'data-end') {
      if (line !== '') throw malformed('A chunk is longer than its size.');
      this.#state = 'line';
      return;
    }
    const parts = LINE.exec(line);
    if (parts === null) throw malformed('The head of a chunk is not a size with its signature.');
    const size = Number.parseInt(parts[1]!, 16);
    if (size > MAX_AWS_CHUNK) throw new Refusal('EntityTooLarge', `A chunk has more than ${MAX_AWS_CHUNK} bytes.`);
    this.#begin(size, parts[2]);
  }

  #begin(size: number, claimed: string | undefined): void {
    const { decodedLength, signing } = this.#options;
    if (signing !== undefined && claimed === undefined) throw malformed('A chunk has no signature.');
    if (signing === undefined && claimed !== undefined) throw malformed('A chunk is signed but the payload is not.');
    this.#claimed = claimed?.toLowerCase() ?? '';
    this.#decoded += size;
    if (this.#decoded > decodedLength) throw tooMany(decodedLength);
    this.#left = size;
    if (size > 0) {
      this.#hash = signing === undefined ? undefined : createHash('sha256');
      this.#state = 'data';
      return;
    }
    this.#last = true;
    this.#hash = undefined;
    this.#checkChunk();
    if (this.#decoded !== decodedLength) {
      throw new Refusal('IncompleteBody', `The body has ${this.#decoded} bytes, announced were ${decodedLength}.`);
    }
    this.#state = 'trailer';
  }

  #checkChunk(): void {
    const { signing } = this.#options;
    if (signing === undefined) return;
    const digest = this.#last ? EMPTY_SHA256 : this.#hash!.digest('hex');
    const { date, scope } = signing;
    const text = `AWS4-HMAC-SHA256-PAYLOAD\n${date}\n${scope}\n${this.#signature}\n${EMPTY_SHA256}\n${digest}`;
    this.#signature = this.#verified(signing.key.sign(text), this.#claimed);
  }

  #verified(signature: string, claimed: string): string {
    if (sameHex(signature, claimed)) return signature;
    throw new Refusal('SignatureDoesNotMatch', 'The signature of a chunk is not the one that the secret key gives.');
  }

  #onTrailer(line: string): void {
    if (line === '') return this.#finish();
    this.#trailerBytes += line.length + 2;
    if (this.#trailerBytes > MAX_TRAILER_BYTES) throw malformed('The trailer is too long.');
    const colon = line.indexOf(':');
    if (colon < 1) throw malformed('A line of the trailer is not a name and a value.');
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    const { trailers, signing } = this.#options;
    if (name === TRAILER_SIGNATURE && signing !== undefined && trailers !== undefined) {
      if (this.#trailerSignature !== undefined) throw malformed('The trailer has two signatures.');
      this.#trailerSignature = value.toLowerCase();
      return;
    }
    if (trailers?.includes(name) !== true || this.trailers.has(name) || this.#trailerSignature !== undefined) {
      throw malformed(`The trailer has a line that was not announced in x-amz-trailer: ${name.slice(0, 64)}.`);
    }
    this.trailers.set(name, value);
    this.#signedTrailer += `${name}:${value}\n`;
  }

  #finish(): void {
    const { signing, trailers } = this.#options;
    for (const name of trailers ?? []) {
      if (!this.trailers.has(name)) throw malformed(`The trailer ${name} was announced but did not come.`);
    }
    if (signing !== undefined && trailers !== undefined) {
      const { date, scope, key } = signing;
      const digest = hash('sha256', Buffer.from(this.#signedTrailer, 'latin1'), 'hex');
      const text = `AWS4-HMAC-SHA256-TRAILER\n${date}\n${scope}\n${this.#signature}\n${digest}`;
      this.#verified(key.sign(text), this.#trailerSignature ?? '');
    }
    this.#state = 'done';
  }
}

function malformed(message: string): Refusal {
  return new Refusal('InvalidRequest', message, { close: true });
}

function tooMany(decodedLength: number): Refusal {
  return new Refusal('IncompleteBody', `The body has more than the ${decodedLength} bytes that were announced.`, {
    close: true,
  });
}
