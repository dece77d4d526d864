import { hash } from 'node:crypto';
import type { ObjectStore } from '@webdfs/client';
import type { Answer } from '../http/answer.ts';
import type { Exchange } from '../http/exchange.ts';
import { MAX_XML_BYTES } from '../http/limits.ts';
import { Refusal } from '../refusal.ts';
import { Payload, type PayloadSigning } from './payload.ts';
import { expectRoot, readXml, type XmlNode } from './xml-read.ts';
import { documentOf } from './xml-write.ts';

/** One S3 request, authenticated and cut into its parts. */
export interface Call {
  readonly exchange: Exchange;
  readonly store: ObjectStore;
  /** Of buckets that were made without one. */
  readonly region: string;
  /** Empty: the request is about the service. */
  readonly bucket: string;
  /** Empty: the request is about the bucket. */
  readonly key: Uint8Array;
  /** Undefined: anyone. */
  readonly accessKeyId: string | undefined;
  readonly signing: PayloadSigning;
}

export type Operation = (call: Call) => Promise<Answer>;

const XML_HEADERS = ['Content-Type', 'application/xml'];

/** A document as an answer. */
export function xml(root: string, headers: readonly string[] = []): Answer {
  return { status: 200, headers: [...XML_HEADERS, ...headers], body: documentOf(root) };
}

export function empty(status: number, headers: readonly string[] = []): Answer {
  return { status, headers };
}

/** Headers of answers whose document comes later. */
export { XML_HEADERS };

/** A number in the query. @throws Refusal InvalidArgument if it is none, or out of its bounds */
export function numberIn(call: Call, name: string, bounds: { least: number; most: number }): number | undefined {
  const text = call.exchange.query.get(name);
  if (text === undefined || text === '') return undefined;
  const value = /^\d{1,10}$/.test(text) ? Number(text) : -1;
  if (value < bounds.least || value > bounds.most) {
    throw new Refusal('InvalidArgument', `${name} is not a number from ${bounds.least} to ${bounds.most}.`, {
      fields: { ArgumentName: name, ArgumentValue: text.slice(0, 64) },
    });
  }
  return value;
}

/**
 * The document that a request carries, verified like any body. With `digest: 'object'` the checksum headers are about the
 * object that the document speaks of, not about the document.
 *
 * @throws Refusal MalformedXML, MissingRequestBodyError, MaxMessageLengthExceeded, InvalidRequest if a digest is required and none came
 */
export async function readDocument(
  call: Call,
  root: string,
  options: { digest: 'required' | 'optional' | 'object' },
): Promise<XmlNode> {
  const payload = new Payload(call.exchange, call.signing, { checksum: options.digest !== 'object' });
  if (options.digest === 'required' && !payload.hasDigest) {
    throw new Refusal('InvalidRequest', 'The request needs a Content-MD5 or a checksum header.');
  }
  const bytes = await payload.whole(MAX_XML_BYTES);
  if (bytes.length === 0) throw new Refusal('MissingRequestBodyError');
  payload.verify(hash('md5', bytes, 'buffer'));
  return expectRoot(readXml(bytes), root);
}

/** Whether a request carries a body at all. */
export function hasBody(call: Call): boolean {
  return call.exchange.announced !== 0;
}

const UPLOAD_ID = /^[0-9a-f]{32}$/;

/** The upload that the query names. @throws Refusal NoSuchUpload for what cannot be one */
export function uploadIdOf(call: Call): string {
  const id = call.exchange.query.get('uploadId') ?? '';
  if (!UPLOAD_ID.test(id)) throw new Refusal('NoSuchUpload');
  return id;
}
