import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { asNodeId, concat, EMPTY, fromHex, type NodeId, toHex, utf8, WebdfsError } from '@webdfs/base';
import { putU16, putU32, u16At, u32At } from './frame.ts';

/**
 * The first frame both ways on every connection.
 *
 * ```
 * offset  size  field
 *      0     4  magic      "WDFW"
 *      4     2  newest     highest version spoken
 *      6     2  oldest     lowest version spoken
 *      8     1  lane       1 messages, 2 bodies
 *      9     3  zero
 *     12     4  window     initial credit per body that the sender of this HELLO grants
 *     16     8  node       id of the sender
 *     24     8  boot       random at process start: another boot means all earlier streams are dead
 *     32    16  cluster    id
 *     48    16  nonce      random
 *     64    32  proof      acceptor: HMAC(K, "acceptor" ‖ transcript); dialler: zero, its proof comes in PROOF
 * ```
 */
export interface Hello {
  readonly newest: number;
  readonly oldest: number;
  readonly lane: Lane;
  readonly window: number;
  readonly node: NodeId;
  /** 16 hex digits. */
  readonly boot: string;
  /** 32 hex digits. */
  readonly cluster: string;
  readonly nonce: Uint8Array;
}

export const LANE = { MESSAGES: 1, BODIES: 2 } as const;
export type Lane = (typeof LANE)[keyof typeof LANE];

export const HELLO_BYTES = 96;
export const PROOF_BYTES = 32;
export const NONCE_BYTES = 16;
export const BOOT_BYTES = 8;
const PROOF_AT = 64;
const MAGIC = utf8('WDFW');
/** 32 bytes of the TLS exporter go here; a plain connection has none. */
const PLAIN_EXPORTER = new Uint8Array(32);

/** Versions that this program speaks. */
export const NEWEST_VERSION = 1;
export const OLDEST_VERSION = 1;

/** With a zero proof; `putProof` fills it in. */
export function packHello(hello: Hello): Uint8Array {
  const bytes = new Uint8Array(HELLO_BYTES);
  bytes.set(MAGIC, 0);
  putU16(bytes, 4, hello.newest);
  putU16(bytes, 6, hello.oldest);
  bytes[8] = hello.lane;
  putU32(bytes, 12, hello.window);
  putU32(bytes, 16, hello.node);
  bytes.set(fromHex(hello.boot), 24);
  bytes.set(fromHex(hello.cluster), 32);
  bytes.set(hello.nonce, 48);
  return bytes;
}

/** @throws WIRE_CORRUPT if it is no HELLO of any version; what it claims is still unproven */
export function unpackHello(bytes: Uint8Array): Hello {
  const bad = (what: string): WebdfsError => new WebdfsError('WIRE_CORRUPT', `greeting ${what}`);
  if (bytes.length !== HELLO_BYTES) throw bad(`has ${bytes.length} bytes, not ${HELLO_BYTES}`);
  if (!MAGIC.every((byte, i) => bytes[i] === byte)) throw bad('begins with another magic');
  if (bytes[9] !== 0 || bytes[10] !== 0 || bytes[11] !== 0) throw bad('has reserved bytes set');
  const lane = bytes[8];
  if (lane !== LANE.MESSAGES && lane !== LANE.BODIES) throw bad(`names lane ${lane}`);
  const node = u32At(bytes, 16);
  if (u32At(bytes, 20) !== 0 || node < 1 || node > 65_535) throw bad('names no node');
  return {
    newest: u16At(bytes, 4),
    oldest: u16At(bytes, 6),
    lane,
    window: u32At(bytes, 12),
    node: asNodeId(node),
    boot: toHex(bytes.subarray(24, 32)),
    cluster: toHex(bytes.subarray(32, 48)),
    nonce: bytes.slice(48, PROOF_AT),
  };
}

/** The version both speak, or undefined. */
export function commonVersion(mine: Hello, theirs: Hello): number | undefined {
  const version = Math.min(mine.newest, theirs.newest);
  return version >= Math.max(mine.oldest, theirs.oldest) ? version : undefined;
}

/** The link key: HKDF-SHA256(cluster secret, salt = cluster id, info = "webdfs wire 1"). */
export function linkKey(secret: Uint8Array, cluster: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, fromHex(cluster), utf8('webdfs wire 1'), 32));
}

/** Both HELLOs with zero proofs, dialler's first, and the TLS exporter: what both proofs are about. */
export function transcript(dialler: Uint8Array, acceptor: Uint8Array, exporter: Uint8Array = EMPTY): Uint8Array {
  const bare = (hello: Uint8Array): Uint8Array => hello.subarray(0, PROOF_AT);
  const zero = new Uint8Array(PROOF_BYTES);
  return concat([bare(dialler), zero, bare(acceptor), zero, exporter.length === 0 ? PLAIN_EXPORTER : exporter]);
}

export function proofOf(role: 'dialler' | 'acceptor', key: Uint8Array, text: Uint8Array): Uint8Array {
  return new Uint8Array(createHmac('sha256', key).update(role).update(text).digest());
}

export function putProof(hello: Uint8Array, proof: Uint8Array): void {
  hello.set(proof, PROOF_AT);
}

export function proofIn(hello: Uint8Array): Uint8Array {
  return hello.subarray(PROOF_AT, PROOF_AT + PROOF_BYTES);
}

/** Compares in constant time. */
export function sameProof(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
