import { EMPTY, fromUtf8 } from '@webdfs/base';
import { Refusal } from '../refusal.ts';
import { decodePercent, encodePercent } from './percent.ts';

/** A request target cut into its parts, nothing decoded. */
export interface Target {
  /** Begins with `/`. */
  readonly path: string;
  /** Without the question mark; empty if there was none. */
  readonly query: string;
  /** Of the absolute form; it stands for the Host header then. */
  readonly authority: string | undefined;
}

const ABSOLUTE = /^https?:\/\/([^/?#]+)([^#]*)$/i;
/** Paths that are their own canonical form: nothing to decode, nothing to encode. */
const PLAIN_PATH = /^[A-Za-z0-9\-._~/]*$/;

/**
 * Cuts the raw target of a request line. It is never normalised: `..`, `//` and `\` are parts of keys.
 *
 * @throws Refusal InvalidURI for `*`, the authority form, a fragment
 */
export function parseTarget(url: string): Target {
  if (url.includes('#')) throw new Refusal('InvalidURI', 'The target has a fragment.', { close: true });
  if (url.startsWith('/')) return cut(url, undefined);
  const absolute = ABSOLUTE.exec(url);
  if (absolute === null) throw new Refusal('InvalidURI', undefined, { close: true });
  const rest = absolute[2] ?? '';
  return cut(rest.startsWith('/') ? rest : `/${rest}`, absolute[1]);
}

function cut(url: string, authority: string | undefined): Target {
  const mark = url.indexOf('?');
  if (mark < 0) return { path: url, query: '', authority };
  return { path: url.slice(0, mark), query: url.slice(mark + 1), authority };
}

/** A path decoded once, beside the form that Signature V4 signs. */
export interface DecodedPath {
  readonly canonical: string;
  /** Undefined: the canonical form is the path itself. */
  readonly bytes: Uint8Array | undefined;
}

/**
 * Decodes a path.
 *
 * @param plusIsSpace  how a bare `+` is meant: clients differ, and only their signature tells
 * @throws Refusal InvalidURI for bad escapes and invalid UTF-8
 */
export function decodePath(path: string, plusIsSpace: boolean): DecodedPath {
  if (PLAIN_PATH.test(path)) return { canonical: path, bytes: undefined };
  const bytes = decodePercent(path, plusIsSpace);
  if (bytes === undefined) throw new Refusal('InvalidURI', 'The path has a bad escape or is not UTF-8.');
  return { canonical: encodePercent(bytes, true), bytes };
}

/** What a request is about: the service (no bucket), a bucket (no key), or an object. */
export interface Address {
  readonly bucket: string;
  readonly key: Uint8Array;
}

const SLASH = 0x2f;

/**
 * Bucket and key of a decoded path. The key is everything after the bucket's slash, as bytes.
 *
 * @param hostBucket  the bucket named by the host (virtual-host style); then the whole path is the key
 */
export function addressOf({ canonical, bytes }: DecodedPath, hostBucket: string | undefined): Address {
  if (bytes === undefined) return plainAddress(canonical, hostBucket);
  if (hostBucket !== undefined) return { bucket: hostBucket, key: bytes.subarray(1) };
  const end = bytes.indexOf(SLASH, 1);
  if (end < 0) return { bucket: fromUtf8(bytes.subarray(1)), key: EMPTY };
  return { bucket: fromUtf8(bytes.subarray(1, end)), key: bytes.subarray(end + 1) };
}

function plainAddress(path: string, hostBucket: string | undefined): Address {
  if (hostBucket !== undefined) return { bucket: hostBucket, key: asciiBytes(path, 1) };
  const end = path.indexOf('/', 1);
  if (end < 0) return { bucket: path.slice(1), key: EMPTY };
  return { bucket: path.slice(1, end), key: asciiBytes(path, end + 1) };
}

/** An encoder costs six times as much for texts of this length. */
function asciiBytes(text: string, from: number): Uint8Array {
  const bytes = new Uint8Array(text.length - from);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(from + i);
  return bytes;
}

/**
 * The bucket that a host names, if it is `bucket.` before one of the door's domains.
 *
 * @param host  of the Host header, perhaps with a port
 * @param domains  lower case
 */
export function bucketOfHost(host: string, domains: readonly string[]): string | undefined {
  const colon = host.lastIndexOf(':');
  const name = (colon >= 0 && !host.endsWith(']') ? host.slice(0, colon) : host).toLowerCase();
  for (const domain of domains) {
    if (name.length > domain.length + 1 && name.endsWith(domain) && name[name.length - domain.length - 1] === '.') {
      return name.slice(0, name.length - domain.length - 1);
    }
  }
  return undefined;
}
