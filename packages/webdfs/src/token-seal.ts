import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { concat, fromHex, fromUtf8, type Random, utf8, WebdfsError } from '@webdfs/base';

/**
 * What nodes tell each other about their secrets, sealed with one that both know: AES-256-GCM, its key
 * HKDF-SHA256(secret, info = "webdfs token rotation 1"). So a link that is plain gives nothing away.
 *
 * ```
 *  0  12  random
 * 12  16  tag
 * 28   n  JSON
 * ```
 */

const CIPHER = 'aes-256-gcm';
const RANDOM_BYTES = 12;
const TAG_BYTES = 16;

function keyOf(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', fromHex(secret), '', 'webdfs token rotation 1', 32));
}

/** @param secret  64 hex digits */
export function seal(value: unknown, secret: string, random: Random): Uint8Array {
  const nonce = random.bytes(RANDOM_BYTES);
  const cipher = createCipheriv(CIPHER, keyOf(secret), nonce);
  const sealed = concat([cipher.update(utf8(JSON.stringify(value))), cipher.final()]);
  return concat([nonce, cipher.getAuthTag(), sealed]);
}

/** What was sealed, and by which of the secrets. @throws ACCESS_DENIED if none of them opens it */
export function unseal(
  bytes: Uint8Array,
  secrets: readonly string[],
): { readonly value: unknown; readonly secret: string } {
  for (const secret of secrets) {
    const opened = openWith(bytes, secret);
    if (opened !== undefined) return { value: JSON.parse(fromUtf8(opened)), secret };
  }
  throw new WebdfsError('ACCESS_DENIED', 'it was sealed with a secret that is not known here');
}

function openWith(bytes: Uint8Array, secret: string): Uint8Array | undefined {
  if (bytes.length < RANDOM_BYTES + TAG_BYTES) return undefined;
  const cipher = createDecipheriv(CIPHER, keyOf(secret), bytes.subarray(0, RANDOM_BYTES));
  cipher.setAuthTag(bytes.subarray(RANDOM_BYTES, RANDOM_BYTES + TAG_BYTES));
  const opened = cipher.update(bytes.subarray(RANDOM_BYTES + TAG_BYTES));
  try {
    cipher.final();
  } catch {
    return undefined;
  }
  return opened;
}
