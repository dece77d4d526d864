import type { Range } from '@webdfs/client';

const ONE = /^(\d*)-(\d*)$/;

/** A position; beyond what a number holds exactly it is beyond any object, so it may be cut. */
function position(digits: string): number {
  return Math.min(Number(digits), Number.MAX_SAFE_INTEGER);
}

/**
 * A Range header, as S3 takes it.
 *
 * @returns undefined for what is to be ignored: another unit, several ranges, what is no range at all (RFC 9110, 14.2);
 *   `'none'` for a range that no object has: its end before its beginning, or the last 0 bytes
 */
export function parseRange(header: string | undefined): Range | 'none' | undefined {
  if (header === undefined) return undefined;
  const text = /^bytes\s*=\s*(.*)$/i.exec(header)?.[1]?.trim();
  const parts = text === undefined ? null : ONE.exec(text);
  if (parts === null) return undefined;
  const [, first, last] = parts as unknown as [string, string, string];
  if (first === '' && last === '') return undefined;
  if (first === '') return position(last) === 0 ? 'none' : { type: 'suffix', count: position(last) };
  if (last === '') return { type: 'from', first: position(first) };
  if (position(last) < position(first)) return 'none';
  return { type: 'from', first: position(first), last: position(last) };
}

/** `x-amz-copy-source-range`: both ends, nothing else. */
export function parseCopyRange(header: string): Range | undefined {
  const parts = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(header);
  if (parts === null) return undefined;
  const first = Number(parts[1]);
  const last = Number(parts[2]);
  return last < first ? undefined : { type: 'from', first, last };
}
