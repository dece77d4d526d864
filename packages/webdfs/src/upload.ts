import { createHash } from 'node:crypto';
import { type Clock, codeOf, concat, REMEDY, sleep, WebdfsError } from '@webdfs/base';
import type { S3Client, S3Request } from './s3-client.ts';
import { textOf } from './s3-answers.ts';

/** One part of an upload, held in memory so that it can be sent again. */
export const PART_BYTES = 16 * 1024 * 1024;
/** Parts under way at once: an upload holds at most this many and the one that fills. */
const PARALLEL_PARTS = 3;
const TRIES = 8;
const FIRST_WAIT_MS = 250;

export interface UploadOptions {
  readonly client: S3Client;
  readonly clock: Clock;
  readonly bucket: string;
  readonly key: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Called with the bytes of each piece once the store has acknowledged it. */
  readonly onSent?: (bytes: number) => void;
}

/** Sends again what may succeed later, waiting longer each time. The body must be whole in memory. */
async function persist(options: UploadOptions, request: S3Request): ReturnType<S3Client['call']> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await options.client.call(request);
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined || REMEDY[code] !== 'retry' || attempt === TRIES) throw error;
      await sleep(options.clock, FIRST_WAIT_MS * 2 ** (attempt - 1), options.signal);
    }
  }
}

/** Cuts a stream into parts of `PART_BYTES`, the last one shorter; at least one, which may be empty. */
export async function* inParts(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let gathered = 0;
  let given = 0;
  for await (const chunk of source) {
    let rest = chunk;
    while (gathered + rest.length >= PART_BYTES) {
      const taken = rest.subarray(0, PART_BYTES - gathered);
      yield concat([...pieces, taken]);
      given++;
      rest = rest.subarray(taken.length);
      pieces = [];
      gathered = 0;
    }
    if (rest.length === 0) continue;
    pieces.push(rest);
    gathered += rest.length;
  }
  if (gathered > 0 || given === 0) yield concat(pieces);
}

function base64Md5(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('base64');
}

/**
 * Uploads a stream of any length: in one request if it is short, else in parts, each tried again when the store asks for
 * it. A failed upload leaves no parts behind.
 */
export async function upload(
  options: UploadOptions,
  source: AsyncIterable<Uint8Array>,
): Promise<{ etag: string; size: number }> {
  const parts = inParts(source);
  const first = await parts.next();
  if (first.done === true) throw new WebdfsError('INVALID', 'nothing to upload');
  const second = await parts.next();
  const { bucket, key } = options;
  if (second.done === true) {
    const body = first.value;
    const { headers } = await persist(options, {
      method: 'PUT',
      bucket,
      key,
      headers: { ...options.headers, 'content-md5': base64Md5(body) },
      body,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    options.onSent?.(body.length);
    return { etag: (headers.etag ?? '').replaceAll('"', ''), size: body.length };
  }
  return await uploadParts(options, joined(first.value, second.value, parts));
}

async function* joined(
  first: Uint8Array,
  second: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield first;
  yield second;
  yield* rest;
}

async function uploadParts(
  options: UploadOptions,
  parts: AsyncIterable<Uint8Array>,
): Promise<{ etag: string; size: number }> {
  const { bucket, key } = options;
  const created = await persist(options, {
    method: 'POST',
    bucket,
    key,
    query: { uploads: '' },
    headers: options.headers ?? {},
  });
  const uploadId = textOf(created.body, 'UploadId') ?? '';
  try {
    const sent = await sendParts(options, uploadId, parts);
    const list = sent.etags.map(
      (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
    );
    const body = new TextEncoder().encode(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`);
    const done = await persist(options, { method: 'POST', bucket, key, query: { uploadId }, body });
    const etag = textOf(done.body, 'ETag');
    if (etag === undefined)
      throw new WebdfsError(
        'UNAVAILABLE',
        `complete s3://${bucket}/${key}: ${textOf(done.body, 'Message') ?? 'no ETag'}`,
      );
    return { etag: etag.replaceAll('"', ''), size: sent.size };
  } catch (error) {
    await options.client.call({ method: 'DELETE', bucket, key, query: { uploadId } }).catch(() => undefined);
    throw error;
  }
}

async function sendParts(
  options: UploadOptions,
  uploadId: string,
  parts: AsyncIterable<Uint8Array>,
): Promise<{ etags: string[]; size: number }> {
  const { bucket, key } = options;
  const etags: string[] = [];
  const underWay = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  let size = 0;
  let number = 0;
  for await (const part of parts) {
    number++;
    const index = number - 1;
    size += part.length;
    const sending = persist(options, {
      method: 'PUT',
      bucket,
      key,
      query: { partNumber: String(number), uploadId },
      headers: { 'content-md5': base64Md5(part) },
      body: part,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    })
      .then(({ headers }) => {
        etags[index] = headers.etag ?? '';
        options.onSent?.(part.length);
      })
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => underWay.delete(sending));
    underWay.add(sending);
    if (underWay.size >= PARALLEL_PARTS) await Promise.race(underWay);
    if (failure !== undefined) break;
  }
  await Promise.all(underWay);
  if (failure !== undefined) throw failure.error;
  return { etags, size };
}
