import { type Clock, type Random, WebdfsError } from '@webdfs/base';
import { ATTEMPT_BYTES } from '@webdfs/replica';

const BIRTH_BYTES = 6;

/**
 * A fresh id for one try of an upload, or for a multipart upload: 6 bytes of birth time (ms, big-endian), so that its age can be
 * judged anywhere, then chance.
 */
export function freshAttempt(clock: Clock, random: Random): Uint8Array {
  const attempt = random.bytes(ATTEMPT_BYTES);
  let birth = clock.now();
  for (let i = BIRTH_BYTES - 1; i >= 0; i--) {
    attempt[i] = birth % 256;
    birth = Math.floor(birth / 256);
  }
  return attempt;
}

/** The id of block `number` of an attempt. */
export function blockId(attempt: Uint8Array, number: number): Uint8Array {
  const id = new Uint8Array(ATTEMPT_BYTES + 4);
  id.set(attempt);
  new DataView(id.buffer).setUint32(ATTEMPT_BYTES, number);
  return id;
}

/** The bytes of an upload's id as clients see it. Undefined if it cannot be one. */
export function parseUploadId(text: string): Uint8Array | undefined {
  return /^[0-9a-f]{32}$/.test(text) ? new Uint8Array(Buffer.from(text, 'hex')) : undefined;
}

/** The error of an upload that is not there (any more). */
export function noUpload(uploadId: string): WebdfsError {
  return new WebdfsError('NOT_FOUND', `no open upload ${uploadId}`, { details: { what: 'upload' } });
}
