import { Refusal } from '../refusal.ts';

/**
 * Header fields by name in lower case. Values are as the parser gives them: one character for each byte (Latin-1);
 * a field that came several times has its values joined with commas, as Signature V4 signs them.
 */
export type Headers = ReadonlyMap<string, string>;

/** Fields that must not come twice: the parser would keep one of them in silence, and we might not keep the same as a proxy. */
const SINGLE = new Set([
  'authorization',
  'content-encoding',
  'content-length',
  'content-md5',
  'content-type',
  'date',
  'expect',
  'host',
  'if-modified-since',
  'if-range',
  'if-unmodified-since',
  'range',
  'transfer-encoding',
  'x-amz-content-sha256',
  'x-amz-copy-source',
  'x-amz-copy-source-range',
  'x-amz-date',
  'x-amz-decoded-content-length',
  'x-amz-metadata-directive',
  'x-amz-security-token',
]);

/**
 * Walks the raw header list (name, value, name, value) once.
 *
 * @throws Refusal InvalidRequest if a field that must be single comes twice
 */
export function readHeaders(raw: readonly string[]): Headers {
  const headers = new Map<string, string>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    const value = raw[i + 1]!;
    const before = headers.get(name);
    if (before === undefined) {
      headers.set(name, value);
      continue;
    }
    if (SINGLE.has(name)) throw new Refusal('InvalidRequest', `The header ${name} came twice.`, { close: true });
    headers.set(name, `${before},${value}`);
  }
  return headers;
}

const NOT_ASCII = /[^\0-\x7f]/;

/** A text as a header value, one character for each byte of its UTF-8. */
export function headerOfText(text: string): string {
  return NOT_ASCII.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text;
}

/** Whether a request comes with a bearer token, or tries to. */
export function bearsToken(headers: Headers): boolean {
  return /^bearer(?: |$)/i.test(headers.get('authorization') ?? '');
}

const BAD_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Whether a value may stand in an answer's header. */
export function isHeaderValue(value: string): boolean {
  return !BAD_VALUE.test(value);
}
