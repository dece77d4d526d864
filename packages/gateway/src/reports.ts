import { fromUtf8, utf8 } from '@webdfs/base';
import type { Answer } from './http/answer.ts';
import type { Exchange } from './http/exchange.ts';
import { Refusal } from './refusal.ts';

/** Stands where a bucket's name would; no bucket can have it. */
export const REPORTS = '-';

/**
 * What a node tells of itself and of its cluster, by name (`status`, `where`), as what JSON can hold; undefined if there is no
 * report of that name. POST begins something, and tells the same as GET.
 */
export type Reporter = (
  name: string,
  parameter: (name: string) => string | undefined,
  method: 'GET' | 'POST',
) => Promise<unknown>;

/** Answers `GET /-/NAME` and `POST /-/NAME`. Only for those who hold a key: the caller has seen to that. @throws Refusal */
export async function serveReport(
  exchange: Exchange,
  key: Uint8Array,
  reporter: Reporter | undefined,
): Promise<Answer> {
  const { method } = exchange;
  if (method !== 'GET' && method !== 'POST') throw new Refusal('MethodNotAllowed');
  const report = await reporter?.(fromUtf8(key), (name) => exchange.query.get(name), method);
  if (report === undefined) throw new Refusal('NoSuchKey');
  return { status: 200, headers: ['Content-Type', 'application/json'], body: utf8(JSON.stringify(report)) };
}
