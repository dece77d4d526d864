import { assert, Reader, toHex, WebdfsError, Writer } from '@webdfs/base';
import { SUMMARY_BYTES } from '@webdfs/store';

/**
 * What replication must know of a record: its size and ETag (for conditions and listings), and which blocks it names
 * (so that those that nobody names can be collected). The rest is its owner's.
 *
 * ```
 * summary   0  8  size       bytes of the object
 *           8 16  etag       MD5 of the bytes, or of the parts' MD5s
 *          24  4  parts      0: a whole; n: the ETag ends in `-n`
 *          28  4  flags      the owner's (bits 0–15: storage class and the like), zero so far
 * owner     0  1  format     1
 *           1  1  layout     0 inline, 1 blocks, 2 parts
 *           2  4  blockBytes
 *           6 16  attempt    of layout 1, else zero
 *          22  n  facts      UTF-8 JSON: headers, user metadata, checksums
 * body         0  inline: the bytes; blocks: empty; parts: per part attempt 16 | size u48 | number u16
 * ```
 * All little-endian. Block n of an attempt has the id attempt ‖ u32 big-endian n.
 */
export interface Summary {
  readonly size: number;
  readonly etag: Uint8Array;
  readonly parts: number;
  readonly flags: number;
}

export type Layout =
  | { readonly type: 'inline' }
  | { readonly type: 'blocks'; readonly attempt: Uint8Array; readonly blockBytes: number }
  | { readonly type: 'parts'; readonly parts: readonly Part[]; readonly blockBytes: number };

export interface Part {
  readonly number: number;
  readonly attempt: Uint8Array;
  readonly size: number;
}

export const ATTEMPT_BYTES = 16;
const FORMAT = 1;
const PART_BYTES = 24;
export const MAX_PARTS = 10_000;

export function packSummary(summary: Summary): Uint8Array {
  assert(summary.etag.length === 16, 'an ETag has 16 bytes');
  return new Writer(SUMMARY_BYTES).u53(summary.size).raw(summary.etag).u32(summary.parts).u32(summary.flags).take();
}

export function unpackSummary(bytes: Uint8Array): Summary {
  const reader = new Reader(bytes);
  return { size: reader.u53(), etag: reader.raw(16), parts: reader.u32(), flags: reader.u32() };
}

/** The ETag as clients see it, without quotes. */
export function etagOf(summary: Uint8Array): string {
  const { etag, parts } = unpackSummary(summary);
  return parts === 0 ? toHex(etag) : `${toHex(etag)}-${parts}`;
}

/** The owner's part of a record's meta, and the body that goes with its layout (the bytes themselves, when inline). */
export function packOwner(layout: Layout, facts: string): { owner: Uint8Array; body: Uint8Array | undefined } {
  const writer = new Writer(256).u8(FORMAT);
  const attempt = layout.type === 'blocks' ? layout.attempt : new Uint8Array(ATTEMPT_BYTES);
  assert(attempt.length === ATTEMPT_BYTES, 'an attempt has 16 bytes');
  writer.u8(layout.type === 'inline' ? 0 : layout.type === 'blocks' ? 1 : 2);
  writer
    .u32(layout.type === 'inline' ? 0 : layout.blockBytes)
    .raw(attempt)
    .raw(new TextEncoder().encode(facts));
  if (layout.type === 'inline') return { owner: writer.take(), body: undefined };
  if (layout.type === 'blocks') return { owner: writer.take(), body: new Uint8Array(0) };
  const body = new Writer(layout.parts.length * PART_BYTES);
  for (const part of layout.parts) {
    body
      .raw(part.attempt)
      .u32(part.size % 4_294_967_296)
      .u16(Math.floor(part.size / 4_294_967_296))
      .u16(part.number);
  }
  return { owner: writer.take(), body: body.take() };
}

/** @throws WebdfsError CORRUPT or NEWER_FORMAT */
export function unpackOwner(owner: Uint8Array, body: Uint8Array): { layout: Layout; facts: string } {
  const reader = new Reader(owner);
  const format = reader.u8();
  if (format !== FORMAT)
    throw new WebdfsError('NEWER_FORMAT', `record has format ${format}, this program knows ${FORMAT}`);
  const kind = reader.u8();
  const blockBytes = reader.u32();
  const attempt = reader.raw(ATTEMPT_BYTES);
  const facts = new TextDecoder().decode(reader.rest());
  if (kind === 0) return { layout: { type: 'inline' }, facts };
  if (kind === 1) return { layout: { type: 'blocks', attempt, blockBytes }, facts };
  if (kind !== 2) throw new WebdfsError('CORRUPT', `record has layout ${kind}`);
  const parts: Part[] = [];
  const list = new Reader(body);
  while (list.left > 0) {
    const partAttempt = list.raw(ATTEMPT_BYTES);
    const low = list.u32();
    parts.push({ attempt: partAttempt, size: low + list.u16() * 4_294_967_296, number: list.u16() });
  }
  return { layout: { type: 'parts', parts, blockBytes }, facts };
}
