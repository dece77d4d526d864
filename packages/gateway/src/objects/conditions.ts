import type { ObjectInfo, PutConditions } from '@webdfs/client';
import { parseHttpDate } from '../http/dates.ts';
import type { Headers } from '../http/headers.ts';
import { Refusal } from '../refusal.ts';

/** Conditions of a read, or of a copy's source (RFC 9110, section 13). */
export interface ReadConditions {
  readonly ifMatch: readonly string[] | undefined;
  readonly ifNoneMatch: readonly string[] | undefined;
  /** ms; whole seconds. */
  readonly modifiedSince: number | undefined;
  readonly unmodifiedSince: number | undefined;
}

/** ETags without quotes; weak ones compare like strong ones, as S3 has only strong ones. */
export function parseEtags(value: string): string[] {
  return value
    .split(',')
    .map((etag) =>
      etag
        .trim()
        .replace(/^W\//, '')
        .replace(/^"(.*)"$/, '$1'),
    )
    .filter((etag) => etag !== '');
}

function etags(headers: Headers, name: string): readonly string[] | undefined {
  const value = headers.get(name);
  return value === undefined ? undefined : parseEtags(value);
}

function date(headers: Headers, name: string): number | undefined {
  const value = headers.get(name);
  // an invalid date is no condition: RFC 9110, 13.1.3
  return value === undefined ? undefined : parseHttpDate(value);
}

/**
 * The conditions of a request, or undefined without any.
 *
 * @param prefix  empty, or `x-amz-copy-source-`
 */
export function readConditions(headers: Headers, prefix = ''): ReadConditions | undefined {
  const conditions: ReadConditions = {
    ifMatch: etags(headers, `${prefix}if-match`),
    ifNoneMatch: etags(headers, `${prefix}if-none-match`),
    modifiedSince: date(headers, `${prefix}if-modified-since`),
    unmodifiedSince: date(headers, `${prefix}if-unmodified-since`),
  };
  return Object.values(conditions).every((value) => value === undefined) ? undefined : conditions;
}

function matches(list: readonly string[], etag: string): boolean {
  return list.includes('*') || list.includes(etag);
}

/** What the conditions say of an object: to answer it, that it is not modified, or that a condition failed. */
export function judge(conditions: ReadConditions, info: ObjectInfo): 'answer' | 'not-modified' | 'failed' {
  const seconds = Math.floor(info.modifiedMs / 1_000) * 1_000;
  const { ifMatch, ifNoneMatch, modifiedSince, unmodifiedSince } = conditions;
  if (ifMatch !== undefined) {
    if (!matches(ifMatch, info.etag)) return 'failed';
  } else if (unmodifiedSince !== undefined && seconds > unmodifiedSince) return 'failed';
  if (ifNoneMatch !== undefined) {
    if (matches(ifNoneMatch, info.etag)) return 'not-modified';
  } else if (modifiedSince !== undefined && seconds <= modifiedSince) return 'not-modified';
  return 'answer';
}

/** @throws Refusal PreconditionFailed: a copy has no "not modified" */
export function checkSource(conditions: ReadConditions | undefined, info: ObjectInfo): void {
  if (conditions !== undefined && judge(conditions, info) !== 'answer') throw new Refusal('PreconditionFailed');
}

/**
 * Conditions of a write.
 *
 * @throws Refusal NotImplemented for `If-None-Match` with anything but `*`, as S3 says
 */
export function writeConditions(headers: Headers): PutConditions | undefined {
  const ifMatch = etags(headers, 'if-match');
  const ifNoneMatch = etags(headers, 'if-none-match');
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined;
  if (ifNoneMatch !== undefined && !(ifNoneMatch.length === 1 && ifNoneMatch[0] === '*')) {
    throw new Refusal('NotImplemented', 'If-None-Match on a write takes only *.');
  }
  return { ...(ifMatch && { ifMatch }), ...(ifNoneMatch && { ifNoneMatch }) };
}
