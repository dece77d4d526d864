import { createHash, type Hash } from 'node:crypto';
import { equalBytes } from '@webdfs/base';
import { type ByteSource, INLINE_BYTES, type ObjectFacts } from '@webdfs/client';
import { NO_BODY } from '../http/body.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Headers } from '../http/headers.ts';
import { MAX_PUT_BYTES } from '../http/limits.ts';
import { Refusal } from '../refusal.ts';
import type { ChunkSigning } from './authenticate.ts';
import { AwsChunked } from './aws-chunked.ts';
import {
  announcedTrailers,
  checkValue,
  type DeclaredChecksum,
  declaredChecksum,
  type RunningChecksum,
  runningChecksum,
} from './checksums.ts';
import { UNSIGNED_PAYLOAD } from './sigv4.ts';

/** The words of `x-amz-content-sha256` that announce `aws-chunked` framing. */
const STREAMING: Readonly<Record<string, StreamingForm>> = {
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD': { signed: true, trailer: false },
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER': { signed: true, trailer: true },
  'STREAMING-UNSIGNED-PAYLOAD-TRAILER': { signed: false, trailer: true },
};

const HEX_SHA256 = /^[0-9a-f]{64}$/;

interface StreamingForm {
  readonly signed: boolean;
  readonly trailer: boolean;
}

function streamingForm(payload: string): StreamingForm | undefined {
  if (!payload.startsWith('STREAMING-')) return undefined;
  const form = STREAMING[payload];
  if (form === undefined) throw new Refusal('NotImplemented', `The payload form ${payload} is not built yet.`);
  return form;
}

/**
 * Bytes of the object that a request carries. Saying nothing of a body is not the same as saying that it is empty: the
 * length may have been lost on the way.
 *
 * @throws Refusal MissingContentLength, EntityTooLarge
 */
function sizeOf(exchange: Exchange, framed: boolean): number {
  const decoded = lengthIn(exchange.headers, 'x-amz-decoded-content-length');
  const size = framed ? decoded : (exchange.announced ?? decoded);
  if (size === undefined || !exchange.announcesBody) throw new Refusal('MissingContentLength');
  if (size <= MAX_PUT_BYTES) return size;
  const fields = { ProposedSize: String(size), MaxSizeAllowed: String(MAX_PUT_BYTES) };
  throw new Refusal('EntityTooLarge', undefined, { fields });
}

/** How a body was signed: what `authenticate` found, or nothing. */
export interface PayloadSigning {
  readonly payload: string;
  readonly signing: ChunkSigning | undefined;
}

export const UNSIGNED: PayloadSigning = { payload: UNSIGNED_PAYLOAD, signing: undefined };

/** The length that a header announces. @throws Refusal InvalidArgument */
function lengthIn(headers: Headers, name: string): number | undefined {
  const text = headers.get(name);
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Refusal('InvalidArgument', `${name} is not a length.`, { close: true });
  return Number(text);
}

/** 16 bytes of `Content-MD5`. @throws Refusal InvalidDigest */
function contentMd5(headers: Headers): Uint8Array | undefined {
  const text = headers.get('content-md5');
  if (text === undefined) return undefined;
  if (!/^[A-Za-z0-9+/]{22}==$/.test(text)) throw new Refusal('InvalidDigest');
  return Buffer.from(text, 'base64');
}

export interface PayloadOptions {
  /** False: the checksum headers are not about this body. */
  readonly checksum?: boolean;
}

/**
 * The body of a request on its way to the object layer, and all that was promised about it: length, signatures of its
 * chunks, SHA-256, MD5, a checksum. Nothing is read before `source` is called.
 */
export class Payload {
  /** Bytes of the object. */
  readonly size: number;
  readonly checksum: DeclaredChecksum | undefined;
  readonly hasDigest: boolean;
  readonly #exchange: Exchange;
  readonly #framing: AwsChunked | undefined;
  readonly #md5: Uint8Array | undefined;
  readonly #claimedSha256: string | undefined;
  readonly #sha256: Hash | undefined;
  readonly #running: RunningChecksum | undefined;

  /** @throws Refusal MissingContentLength, EntityTooLarge, InvalidDigest, InvalidRequest, NotImplemented */
  constructor(exchange: Exchange, { payload, signing }: PayloadSigning, options: PayloadOptions = {}) {
    const { headers } = exchange;
    const streaming = streamingForm(payload);
    this.#exchange = exchange;
    this.size = sizeOf(exchange, streaming !== undefined);
    this.#md5 = contentMd5(headers);
    this.checksum = options.checksum === false ? undefined : declaredChecksum(headers);
    this.hasDigest = this.#md5 !== undefined || this.checksum !== undefined;
    this.#framing = streaming && framingOf(streaming, { headers, signing, size: this.size });
    if (this.checksum !== undefined) {
      if (this.checksum.value === undefined && streaming?.trailer !== true) {
        throw new Refusal('InvalidRequest', 'x-amz-trailer came without a payload that has a trailer.');
      }
      this.#running = runningChecksum(this.checksum.algorithm);
    }
    if (HEX_SHA256.test(payload)) {
      this.#claimedSha256 = payload;
      this.#sha256 = createHash('sha256');
    }
  }

  /** The object's bytes: whole if they are few, else a stream. */
  source(): Promise<ByteSource> | ByteSource {
    if (this.size === 0 && this.#framing === undefined) return NO_BODY;
    const tap = this.#running === undefined && this.#sha256 === undefined ? undefined : this.#tap;
    const body = this.#exchange.body({ framing: this.#framing, tap });
    return this.size <= INLINE_BYTES ? body.whole(INLINE_BYTES) : body;
  }

  /** All bytes of a small body. @throws Refusal MaxMessageLengthExceeded beyond `limit` */
  async whole(limit: number): Promise<Uint8Array> {
    if (this.size > limit) throw new Refusal('MaxMessageLengthExceeded');
    if (this.size === 0 && this.#framing === undefined) return NO_BODY;
    return await this.#exchange.body({ framing: this.#framing, tap: this.#tap }).whole(limit);
  }

  readonly #tap = (piece: Uint8Array): void => {
    this.#sha256?.update(piece);
    this.#running?.update(piece);
  };

  /**
   * Compares what came with what was promised; to be called once, after the last byte.
   *
   * @throws Refusal XAmzContentSHA256Mismatch, BadDigest
   */
  readonly verify = (md5: Uint8Array): Partial<ObjectFacts> | undefined => {
    if (this.#sha256 !== undefined) {
      const computed = this.#sha256.digest('hex');
      if (computed !== this.#claimedSha256) {
        const fields = { ClientComputedContentSHA256: this.#claimedSha256!, S3ComputedContentSHA256: computed };
        throw new Refusal('XAmzContentSHA256Mismatch', undefined, { fields });
      }
    }
    if (this.#md5 !== undefined && !equalBytes(this.#md5, md5)) {
      throw new Refusal('BadDigest', 'The bytes that arrived do not have the Content-MD5 that was sent.');
    }
    return this.#verifyChecksum();
  };

  #verifyChecksum(): Partial<ObjectFacts> | undefined {
    if (this.checksum === undefined || this.#running === undefined) return undefined;
    const { algorithm } = this.checksum;
    const claimed = this.checksum.value ?? this.#framing?.trailers.get(`x-amz-checksum-${algorithm}`) ?? '';
    checkValue(algorithm, claimed);
    if (this.#running.digest() !== claimed) {
      throw new Refusal('BadDigest', `The bytes that arrived do not have the ${algorithm} that was sent.`);
    }
    return { checksums: { [algorithm]: claimed }, checksumType: 'FULL_OBJECT' };
  }
}

function framingOf(
  form: StreamingForm,
  { headers, signing, size }: { headers: Headers; signing: ChunkSigning | undefined; size: number },
): AwsChunked {
  if (form.signed && signing === undefined) throw new Refusal('AccessDenied', 'Signed chunks need a signed request.');
  return new AwsChunked({
    decodedLength: size,
    signing: form.signed ? signing : undefined,
    trailers: form.trailer ? announcedTrailers(headers) : undefined,
  });
}
