import { isUtf8 } from 'node:buffer';

const PERCENT = 0x25;
const PLUS = 0x2b;
const SPACE = 0x20;
const SLASH = 0x2f;

/** 0..15 for a hex digit's code, else 255. */
const HEX_VALUE = new Uint8Array(256).fill(255);
/** 1 for what RFC 3986 calls unreserved. */
const UNRESERVED = new Uint8Array(256);
const ESCAPE: string[] = [];
for (let code = 0; code < 256; code++) {
  const text = String.fromCharCode(code);
  if (/[0-9a-f]/i.test(text)) HEX_VALUE[code] = Number.parseInt(text, 16);
  if (/[A-Za-z0-9._~-]/.test(text)) UNRESERVED[code] = 1;
  ESCAPE.push(`%${code.toString(16).toUpperCase().padStart(2, '0')}`);
}

/**
 * Decodes `%XX` once, to bytes.
 *
 * @param text  ASCII, as the request line had it
 * @param plusIsSpace  in queries `+` means a space
 * @returns undefined for an escape that is none, a character that needed one, or bytes that are not UTF-8
 */
export function decodePercent(text: string, plusIsSpace: boolean): Uint8Array | undefined {
  const bytes = new Uint8Array(text.length);
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    let code = text.charCodeAt(i);
    if (code <= SPACE || code >= 127) return undefined;
    if (code === PERCENT) {
      code = escapedAt(text, i);
      if (code < 0) return undefined;
      i += 2;
    } else if (code === PLUS && plusIsSpace) code = SPACE;
    bytes[length++] = code;
  }
  const decoded = bytes.subarray(0, length);
  return isUtf8(decoded) ? decoded : undefined;
}

/** The byte that `%XX` stands for, or -1. */
function escapedAt(text: string, index: number): number {
  const high = HEX_VALUE[text.charCodeAt(index + 1)] ?? 255;
  const low = HEX_VALUE[text.charCodeAt(index + 2)] ?? 255;
  return high === 255 || low === 255 ? -1 : high * 16 + low;
}

/** Encodes by Signature V4's rule: everything but unreserved characters as `%XX` in capitals; `/` stays if `keepSlash`. */
export function encodePercent(bytes: Uint8Array, keepSlash: boolean): string {
  let text = '';
  for (const code of bytes) {
    if (UNRESERVED[code] === 1 || (keepSlash && code === SLASH)) text += String.fromCharCode(code);
    else text += ESCAPE[code];
  }
  return text;
}
