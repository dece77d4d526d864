import type { DiskFile } from '@webdfs/base';
import {
  bodyFits,
  ENTRY_HEAD_BYTES,
  type EntryHead,
  entryBytesOf,
  findMagic,
  headBytesAt,
  type HeadPlace,
  keyOf,
  metaOf,
  readHead,
  sumsOf,
} from './entry-format.ts';
import { viewPart } from './plain-bytes.ts';

/** Where to read: an open volume file. */
export interface ScanSource {
  readonly file: DiskFile;
  readonly volume: number;
  readonly salt: number;
}

/** An entry whose head is whole. All bytes are views that hold until the visitor returns: copy what is kept. */
export interface ScannedEntry {
  readonly type: 'entry';
  readonly head: EntryHead;
  readonly key: Uint8Array;
  readonly meta: Uint8Array;
  readonly sums: Uint32Array;
  readonly body: Uint8Array;
  readonly entryBytes: number;
  /** False: the body does not fit its checksums. */
  readonly whole: boolean;
  /** Head, body and padding. */
  readonly raw: Uint8Array;
}

/** Bytes that were stable once and are no entry now. What stood there is unknown. */
export interface ScannedRot {
  readonly type: 'rot';
  readonly place: number;
  readonly until: number;
}

export interface ScanRange {
  /** Where the first entry begins. */
  readonly from: number;
  /** End of the file, or the `end` of its seal. */
  readonly until: number;
  /** Everything below `until` was stable: whatever does not fit is rot. */
  readonly sealed: boolean;
  /** Called before each window is read, with its size: paces a scan. */
  readonly pace?: (bytes: number) => Promise<void>;
  /** False: heads only, bodies are neither read in full nor checked (`whole` is true). */
  readonly bodies?: boolean;
}

export interface ScanOutcome {
  /** Where the scan ended: `until`, or the place where the torn tail begins. */
  readonly end: number;
  /** The largest `durable` in any good head met or looked ahead at; 0 if none. */
  readonly durable: number;
}

export type ScanVisitor = (step: ScannedEntry | ScannedRot) => void | Promise<void>;

const WINDOW_BYTES = 4 * 1024 * 1024;
/** Without bodies the scan hops from head to head. */
const HEADS_WINDOW_BYTES = 128 * 1024;
/** More than the longest head: what a look-ahead must have in memory beyond a magic. */
const LONGEST_HEAD_BYTES = 32 * 1024;
const NO_SUMS = new Uint32Array(0);

/**
 * Walks the entries of a volume (store recovery, step 3) and tells a torn write from rot: bytes at p that do not fit are
 * rot if a later head says that the file was durable beyond p when it was written, or if the file is sealed; otherwise
 * the unacknowledged tail begins at p and the walk ends.
 *
 * Source: Alagappan et al., "Protocol-Aware Recovery for Consensus-Based Storage", FAST 2018, section 3.3.
 */
export async function scanVolume(source: ScanSource, range: ScanRange, visit: ScanVisitor): Promise<ScanOutcome> {
  const window = new Window(source.file, range);
  let place = range.from;
  let durable = 0;
  while (place < range.until) {
    const entry = await entryAt(window, source, place, range);
    if (entry !== undefined) durable = Math.max(durable, entry.head.durable);
    if (entry !== undefined && entry.whole) {
      const visited = visit(entry);
      if (visited !== undefined) await visited;
      place += entry.entryBytes;
      continue;
    }
    const ahead = await lookAhead(source, place + 8, range.until, range.sealed ? 0 : place);
    durable = Math.max(durable, ahead.durable);
    if (!range.sealed && durable <= place) return { end: place, durable };
    const step = entry ?? ({ type: 'rot', place, until: ahead.head } as const);
    const visited = visit(step);
    if (visited !== undefined) await visited;
    place = entry === undefined ? ahead.head : place + entry.entryBytes;
  }
  return { end: range.until, durable };
}

/** The entry at `place`, if its head is whole and it ends inside the range. */
async function entryAt(
  window: Window,
  source: ScanSource,
  place: number,
  range: ScanRange,
): Promise<ScannedEntry | undefined> {
  if (!window.holds(place, ENTRY_HEAD_BYTES)) await window.load(place);
  const headBytes = headBytesAt(window.bytes, place - window.base);
  if (headBytes === 0) return undefined;
  if (!window.holds(place, headBytes)) await window.load(place);
  const where: HeadPlace = { volume: source.volume, salt: source.salt, place };
  const head = readHead(window.bytes, place - window.base, where);
  if (head === undefined) return undefined;
  const entryBytes = entryBytesOf(head);
  if (place + entryBytes > range.until) return undefined;
  if (range.bodies === false) return entryIn(window, head, false);
  if (!window.holds(place, entryBytes)) await window.load(place);
  return entryIn(window, head, true);
}

function entryIn({ bytes, base }: Window, head: EntryHead, bodies: boolean): ScannedEntry {
  const entryBytes = entryBytesOf(head);
  const offset = head.place - base;
  const sums = bodies ? sumsOf(bytes, offset, head) : NO_SUMS;
  const bodyFrom = offset + head.headBytes;
  const body = viewPart(bytes, bodyFrom, bodies ? bodyFrom + head.bodyBytes : bodyFrom);
  return {
    type: 'entry',
    head,
    key: keyOf(bytes, offset, head),
    meta: metaOf(bytes, offset, head),
    sums,
    body,
    entryBytes,
    whole: !bodies || bodyFits(body, sums),
    raw: viewPart(bytes, offset, bodies ? offset + entryBytes : bodyFrom),
  };
}

/**
 * Looks for good heads in [from, until): the place of the first, and the largest `durable` of those met until one is
 * above `enough`. Without any, `head` is `until`.
 */
async function lookAhead(
  source: ScanSource,
  from: number,
  until: number,
  enough: number,
): Promise<{ head: number; durable: number }> {
  let first = until;
  let durable = 0;
  const bytes = Buffer.alloc(Math.max(0, Math.min(WINDOW_BYTES, until - from)));
  for (let base = from; base < until; base += WINDOW_BYTES - LONGEST_HEAD_BYTES) {
    const count = await source.file.read(bytes.subarray(0, Math.min(bytes.length, until - base)), base);
    const held = bytes.subarray(0, count);
    for (let at = findMagic(held, 0, base); at >= 0; at = findMagic(held, at + 8, base)) {
      const head = readHead(held, at, { volume: source.volume, salt: source.salt, place: base + at });
      if (head === undefined) continue;
      first = Math.min(first, base + at);
      durable = Math.max(durable, head.durable);
      if (durable > enough || enough === 0) return { head: first, durable };
    }
    if (base + count >= until) break;
  }
  return { head: first, durable };
}

/** A part of the file in memory, moved along as the scan goes. */
class Window {
  readonly #file: DiskFile;
  readonly #until: number;
  readonly #pace: ((bytes: number) => Promise<void>) | undefined;
  readonly #buffer: Buffer;
  bytes: Buffer;
  base = 0;

  constructor(file: DiskFile, range: ScanRange) {
    this.#file = file;
    this.#until = range.until;
    this.#pace = range.pace;
    const size = (range.bodies ?? true) ? WINDOW_BYTES : HEADS_WINDOW_BYTES;
    this.#buffer = Buffer.from(new ArrayBuffer(Math.min(size, range.until)));
    this.bytes = this.#buffer.subarray(0, 0);
  }

  holds(place: number, count: number): boolean {
    return place >= this.base && place + count <= this.base + this.bytes.length;
  }

  /** Makes the window begin at `place`. */
  async load(place: number): Promise<void> {
    const wanted = Math.min(this.#buffer.length, this.#until - place);
    await this.#pace?.(wanted);
    const count = await this.#file.read(this.#buffer.subarray(0, wanted), place);
    this.bytes = this.#buffer.subarray(0, count);
    this.base = place;
  }
}
