import { codeOf } from '@webdfs/base';
import type { GetOptions, ObjectInfo, ObjectStore, Range } from '@webdfs/client';
import { type Answer, PieceBody } from '../http/answer.ts';
import { httpDate } from '../http/dates.ts';
import type { Exchange } from '../http/exchange.ts';
import { Refusal } from '../refusal.ts';
import { judge, parseEtags, type ReadConditions, readConditions } from './conditions.ts';
import { checksumHeaders, headersOf } from './facts.ts';
import { parseRange } from './range.ts';

export interface ObjectRead {
  readonly exchange: Exchange;
  readonly store: ObjectStore;
  readonly bucket: string;
  readonly key: Uint8Array;
  /** Of a multipart object; stands for a range. */
  readonly partNumber?: number | undefined;
  /** Kept headers to be answered otherwise, from `response-…` in the query. */
  readonly overrides?: Readonly<Record<string, string>> | undefined;
  readonly withChecksums?: boolean;
}

/** One read of an object: what was asked for, and what was found. */
class Reading {
  readonly #read: ObjectRead;
  readonly #conditions: ReadConditions | undefined;
  readonly #asked: Range | 'none' | undefined;
  info: ObjectInfo | undefined;

  constructor(read: ObjectRead, asked: Range | 'none' | undefined) {
    this.#read = read;
    this.#asked = asked;
    this.#conditions = readConditions(read.exchange.headers);
  }

  options(): GetOptions {
    const range = this.#asked;
    const { signal } = this.#read.exchange;
    return { check: this.#check, signal, ...(range !== undefined && range !== 'none' && { range }) };
  }

  readonly #check = (info: ObjectInfo): void => {
    this.info = info;
    const verdict = this.#conditions === undefined ? 'answer' : judge(this.#conditions, info);
    if (verdict === 'failed') throw new Refusal('PreconditionFailed');
    if (verdict === 'not-modified') throw new Refusal('NotModified', undefined, { headers: headersOf(info) });
    if (this.#asked === 'none') throw this.outOfRange();
  };

  /** 416, with the size that the range should have been within. */
  outOfRange(): Refusal {
    const size = String(this.info?.size ?? 0);
    if (this.#read.partNumber !== undefined) {
      return new Refusal('InvalidPartNumber', undefined, {
        fields: { PartNumberRequested: String(this.#read.partNumber), ActualPartCount: String(this.info?.parts ?? 0) },
      });
    }
    return new Refusal('InvalidRange', undefined, {
      fields: { RangeRequested: this.#read.exchange.headers.get('range') ?? '', ActualObjectSize: size },
      headers: ['Content-Range', `bytes */${size}`],
    });
  }

  head(found: { info: ObjectInfo; offset: number; length: number }): { status: number; headers: string[] } {
    const { info, offset, length } = found;
    const headers = headersOf(info, this.#read.overrides);
    if (this.#read.partNumber !== undefined && info.parts > 0) {
      headers.push('x-amz-mp-parts-count', String(info.parts));
    }
    if (this.#asked === undefined) {
      if (this.#read.withChecksums === true) headers.push(...checksumHeaders(info));
      return { status: 200, headers };
    }
    headers.push('Content-Range', `bytes ${offset}-${offset + length - 1}/${info.size}`);
    return { status: 206, headers };
  }
}

/**
 * Answers GET and HEAD of an object, for both doors: conditions, ranges, kept headers.
 *
 * @throws Refusal NotModified, PreconditionFailed, InvalidRange, InvalidPartNumber; what the object layer throws
 */
export async function readObject(read: ObjectRead): Promise<Answer> {
  const reading = new Reading(read, await askedRange(read));
  const { store, bucket, key } = read;
  try {
    if (read.exchange.method === 'HEAD') {
      const found = await store.head(bucket, key, reading.options());
      return { ...reading.head(found), length: found.length };
    }
    const found = await store.get(bucket, key, reading.options());
    const body = found.body instanceof Uint8Array ? found.body : new PieceBody(found.body, found.length);
    return { ...reading.head(found), body };
  } catch (error) {
    if (codeOf(error) === 'RANGE_NOT_SATISFIABLE') throw reading.outOfRange();
    throw error;
  }
}

async function askedRange(read: ObjectRead): Promise<Range | 'none' | undefined> {
  const { headers } = read.exchange;
  const header = headers.get('range');
  if (read.partNumber !== undefined) {
    if (header !== undefined) throw new Refusal('InvalidRequest', 'Range and partNumber exclude each other.');
    return { type: 'part', number: read.partNumber };
  }
  const range = parseRange(header);
  const validator = headers.get('if-range');
  if (range === undefined || validator === undefined) return range;
  return (await stillValid(read, validator)) ? range : undefined;
}

/** Whether an object is still the one that `If-Range` names, by ETag or date. */
async function stillValid(read: ObjectRead, validator: string): Promise<boolean> {
  const { info } = await read.store.head(read.bucket, read.key);
  if (validator.includes('"')) return parseEtags(validator).includes(info.etag) && !validator.startsWith('W/');
  return httpDate(info.modifiedMs) === validator;
}
