import { type ErrorCode, fromUtf8, WebdfsError } from '@webdfs/base';
import type { MapEntry } from '../map-store.ts';

/** What etcd's JSON says, checked. Numbers of 64 bits are text there, zero and false are left out. */
export type Fields = Readonly<Record<string, unknown>>;

function refuse(what: string): never {
  throw new WebdfsError('WIRE_CORRUPT', `etcd: ${what}`);
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function fieldsIn(fields: Fields, name: string): Fields {
  const value = fields[name];
  return isFields(value) ? value : refuse(`an answer lacks ${name}`);
}

export function listIn(fields: Fields, name: string): readonly Fields[] {
  const value = fields[name] ?? [];
  if (!Array.isArray(value)) refuse(`${name} is not a list`);
  return (value as unknown[]).map((each) => (isFields(each) ? each : refuse(`${name} is not a list of objects`)));
}

export function numberIn(fields: Fields, name: string): number {
  const value = Number(fields[name] ?? 0);
  return Number.isSafeInteger(value) && value >= 0 ? value : refuse(`${name} is ${String(fields[name])}`);
}

/** The store's counter when it answered. */
export function revisionOf(answer: Fields): number {
  return numberIn(fieldsIn(answer, 'header'), 'revision');
}

export function bytesIn(fields: Fields, name: string): string {
  const value = fields[name] ?? '';
  if (typeof value !== 'string') refuse(`${name} is not text`);
  return fromUtf8(Buffer.from(value as string, 'base64'));
}

/** Words for people. */
export function reasonIn(fields: Fields, name: string): string {
  const text = fields[name];
  return typeof text === 'string' && text !== '' ? text : 'no reason given';
}

/** A key with its value, the prefix cut off. */
export function entryOf(kv: Fields, prefix: string): MapEntry {
  const key = bytesIn(kv, 'key');
  if (!key.startsWith(prefix)) refuse(`a key outside of ${prefix}`);
  return {
    key: key.slice(prefix.length),
    value: bytesIn(kv, 'value'),
    createRevision: numberIn(kv, 'create_revision'),
    modRevision: numberIn(kv, 'mod_revision'),
  };
}

/** By gRPC's numbers; what is not named here is UNAVAILABLE: unknown whether it happened. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  3: 'INVALID',
  5: 'NOT_FOUND',
  7: 'ACCESS_DENIED',
  9: 'CONFLICT',
  16: 'ACCESS_DENIED',
};

/** Causes that share a gRPC number, told apart by etcd's words. */
const CAUSES: readonly (readonly [words: RegExp, code: ErrorCode])[] = [
  [/required revision has been compacted/, 'COMPACTED'],
  [/required revision is a future revision/, 'OLD_STORE'],
  [/database space exceeded/, 'DISK_FULL'],
  [/request is too large/, 'TOO_LARGE'],
  [/too many requests/, 'BUSY'],
  [/authentication failed|invalid auth token|user name is empty|permission denied/, 'ACCESS_DENIED'],
];

/**
 * An error within an answer. Up to 3.5 single answers have it as text beside its number, streams as an object; since 3.6
 * single answers have number and message alone, streams an object with other names.
 */
function failureIn(answer: Fields): { readonly text: string; readonly number: number } | undefined {
  const { error } = answer;
  if (isFields(error)) {
    return { text: reasonIn(error, 'message'), number: Number(error['grpc_code'] ?? error['code']) };
  }
  if (error === undefined && (typeof answer['code'] !== 'number' || answer['message'] === undefined)) return undefined;
  return { text: reasonIn(answer, error === undefined ? 'message' : 'error'), number: Number(answer['code']) };
}

/** The error that an answer of etcd means, if it means one. */
export function errorOf(answer: Fields): WebdfsError | undefined {
  const failure = failureIn(answer);
  if (failure === undefined) return undefined;
  const { text, number } = failure;
  const code = CAUSES.find(([words]) => words.test(text))?.[1] ?? CODES[number] ?? 'UNAVAILABLE';
  return new WebdfsError(code, `etcd: ${text}`, { details: { sent: true } });
}

/** Whether the request was refused for want of a token that is still good. */
export function wantsToken(answer: Fields): boolean {
  return /invalid auth token|user name is empty/.test(failureIn(answer)?.text ?? '');
}
