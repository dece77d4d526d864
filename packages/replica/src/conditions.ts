import { toHex, WebdfsError } from '@webdfs/base';
import { MAX_RECORD_BODY } from './request-codec.ts';
import { REQUEST_ID_BYTES, type RecordRow, SUMMARY_BYTES } from '@webdfs/store';
import { ATTEMPT_BYTES, etagOf } from './record.ts';
import type { Conditions, WriteRequest } from './requests.ts';

/** The store's bound on what an entry keeps beside key and body. */
const MAX_META_BYTES = 16_384;
const MAX_KEY_BYTES = 2_048;
const LAYOUT_BLOCKS = 1;

/** A note that this attempt is refused for good (protocol, B2): `1 ‖ attempt`. */
const FENCE_NOTE = 1;
/** What the names of all fences begin with. */
export const FENCE_PREFIX: Uint8Array = Uint8Array.of(FENCE_NOTE);

/** The name of the note that fences an attempt, in the group of the key it was for. */
export function fenceNote(attempt: Uint8Array): Uint8Array {
  const name = new Uint8Array(1 + ATTEMPT_BYTES);
  name[0] = FENCE_NOTE;
  name.set(attempt, 1);
  return name;
}

/** The attempt that a put names by its blocks, if it does. */
export function attemptOf(request: WriteRequest): Uint8Array | undefined {
  if (request.kind !== 'put' || request.owner[1] !== LAYOUT_BLOCKS || request.owner.length < 6 + ATTEMPT_BYTES) return;
  return request.owner.subarray(6, 6 + ATTEMPT_BYTES);
}

/** When an attempt began: its first six bytes, big-endian. */
export function birthOf(attempt: Uint8Array): number {
  const view = new DataView(attempt.buffer, attempt.byteOffset, 6);
  return view.getUint16(0) * 4_294_967_296 + view.getUint32(2);
}

/** Whether the answer depends on what is there, so that what is in flight must settle first (W4). */
export function dependsOnState(request: WriteRequest): boolean {
  const { ifMatch, ifNoneMatch } = request.conditions;
  if (ifMatch !== undefined || ifNoneMatch !== undefined) return true;
  return request.kind === 'delete' || request.requires.length > 0 || request.closes !== undefined;
}

/**
 * Whether a request can be stored at all.
 *
 * @throws INVALID, TOO_LARGE
 */
export function checkShape(request: WriteRequest): void {
  const isPut = request.kind === 'put';
  checkSizes(request, isPut);
  if (request.requestId.length !== REQUEST_ID_BYTES) {
    throw new WebdfsError('INVALID', `request id of ${request.requestId.length} bytes`);
  }
  if (request.summary.length !== (isPut ? SUMMARY_BYTES : 0)) {
    throw new WebdfsError('INVALID', `summary of ${request.summary.length} bytes`);
  }
  if (request.key.length === 0 || request.key.length > MAX_KEY_BYTES) {
    throw new WebdfsError('TOO_LARGE', `key of ${request.key.length} bytes, 1..${MAX_KEY_BYTES}`);
  }
  if (!isPut && request.closes !== undefined) throw new WebdfsError('INVALID', 'a delete closes no other key');
}

function checkSizes(request: WriteRequest, isPut: boolean): void {
  const meta = REQUEST_ID_BYTES + SUMMARY_BYTES + 2 + (request.closes?.length ?? 0) + request.owner.length;
  if (meta > MAX_META_BYTES) throw new WebdfsError('TOO_LARGE', `${meta} bytes of metadata, limit ${MAX_META_BYTES}`);
  const limit = isPut ? MAX_RECORD_BODY : 0;
  if (request.body.length > limit) {
    throw new WebdfsError('TOO_LARGE', `body of ${request.body.length} bytes in a record, limit ${limit}`);
  }
}

/**
 * `If-Match` and `If-None-Match` against the present version (RFC 9110, section 13).
 *
 * @returns the refusal, undefined if they hold
 */
export function conditionFails(conditions: Conditions, row: RecordRow | undefined): WebdfsError | undefined {
  const { ifMatch, ifNoneMatch } = conditions;
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined;
  const etag = row === undefined ? undefined : etagOf(row.summary);
  const matches = (tags: readonly string[]): boolean =>
    etag !== undefined && (tags.includes('*') || tags.includes(etag));
  const details = { exists: row !== undefined };
  if (ifMatch !== undefined && !matches(ifMatch)) {
    return new WebdfsError('PRECONDITION_FAILED', `If-Match: the ETag is ${etag ?? 'none'}`, { details });
  }
  if (ifNoneMatch !== undefined && matches(ifNoneMatch)) {
    return new WebdfsError('PRECONDITION_FAILED', `If-None-Match: the ETag is ${etag ?? 'none'}`, { details });
  }
  return undefined;
}

/**
 * Rows of other keys that must be as said.
 *
 * @returns the refusal, undefined if all are
 */
export function requirementFails(
  request: WriteRequest,
  find: (key: Uint8Array) => RecordRow | undefined,
): WebdfsError | undefined {
  for (const { key, sequence } of request.requires) {
    const found = find(key)?.sequence ?? 0;
    if (sequence === -1 ? found > 0 : found === sequence) continue;
    const wanted = sequence === -1 ? 'any' : sequence;
    return new WebdfsError('CONFLICT', `key ${toHex(key.subarray(0, 64))} has version ${found}, required ${wanted}`, {
      details: { found, required: sequence },
    });
  }
  return undefined;
}

/** A text that names a thing in flight: a record by its key, a note by its name. */
export function touchesOf(kind: 'record' | 'note', key: Uint8Array): string {
  return (kind === 'record' ? 'r' : 'n') + Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1');
}

/** All that must have settled before a request that depends on state is judged; its own key first. */
export function settledFirst(request: WriteRequest): string[] {
  const names = [touchesOf('record', request.key)];
  for (const { key } of request.requires) names.push(touchesOf('record', key));
  if (request.closes !== undefined) names.push(touchesOf('record', request.closes));
  return names;
}

/** The meta of the entry that a request becomes: entry.ts in store has its layout. */
export function packMeta(request: WriteRequest): Uint8Array {
  const closes = request.closes;
  const closing = closes === undefined ? 0 : 2 + closes.length;
  const meta = new Uint8Array(REQUEST_ID_BYTES + request.summary.length + closing + request.owner.length);
  meta.set(request.requestId);
  let at = REQUEST_ID_BYTES;
  meta.set(request.summary, at);
  at += request.summary.length;
  if (closes !== undefined) {
    meta[at] = closes.length & 255;
    meta[at + 1] = closes.length >> 8;
    meta.set(closes, at + 2);
    at += closing;
  }
  meta.set(request.owner, at);
  return meta;
}

/** What a record keeps beside its bytes for its owner: the meta after id, summary and closed key. */
export function ownerOf(meta: Uint8Array, closes: boolean): Uint8Array {
  const at = REQUEST_ID_BYTES + SUMMARY_BYTES;
  if (!closes) return meta.subarray(at);
  return meta.subarray(at + 2 + (meta[at]! | (meta[at + 1]! << 8)));
}
