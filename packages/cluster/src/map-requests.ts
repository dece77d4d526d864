import { WebdfsError } from '@webdfs/base';
import type { Compare, Transaction, Write } from './map-store.ts';

/** What a client of the embedded map store asks for. */
export type MapRequest =
  /** First: which process this is, so that its leases can be ended when it dies. */
  | { readonly op: 'hello'; readonly pid: number }
  | { readonly op: 'read' }
  | { readonly op: 'transact'; readonly transaction: Transaction }
  | { readonly op: 'fresh' }
  /** Answered once there is something after this revision. */
  | { readonly op: 'changes'; readonly after: number }
  | { readonly op: 'lease'; readonly ttlMs: number }
  | { readonly op: 'renew'; readonly lease: number }
  | { readonly op: 'end'; readonly lease: number };

type Fields = Readonly<Record<string, unknown>>;

function refuse(what: string): never {
  throw new WebdfsError('INVALID', `map request: ${what}`);
}

function numberIn(fields: Fields, name: string): number {
  const value = fields[name];
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : refuse(`${name} is not a number`);
}

function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === 'string' ? value : refuse(`${name} is not text`);
}

function compareOf(fields: Fields): Compare {
  switch (fields['type']) {
    case 'modified':
      return { type: 'modified', key: textIn(fields, 'key'), is: numberIn(fields, 'is') };
    case 'created':
      return { type: 'created', key: textIn(fields, 'key'), is: numberIn(fields, 'is') };
    case 'range':
      return { type: 'range', prefix: textIn(fields, 'prefix'), notAfter: numberIn(fields, 'notAfter') };
    default:
      return refuse('unknown compare');
  }
}

function writeOf(fields: Fields): Write {
  switch (fields['type']) {
    case 'put': {
      const put = { type: 'put' as const, key: textIn(fields, 'key'), value: textIn(fields, 'value') };
      return fields['lease'] === undefined ? put : { ...put, lease: numberIn(fields, 'lease') };
    }
    case 'delete':
      return { type: 'delete', key: textIn(fields, 'key') };
    default:
      return refuse('unknown write');
  }
}

function fieldsIn(fields: Fields, name: string): readonly Fields[] {
  const value = fields[name];
  if (!Array.isArray(value)) refuse(`${name} is not a list`);
  return value.map((each): Fields =>
    typeof each === 'object' && each !== null ? each : refuse(`${name} is not a list`),
  );
}

function transactionOf(value: unknown): Transaction {
  if (typeof value !== 'object' || value === null) return refuse('no transaction');
  const fields = value as Fields;
  return { compare: fieldsIn(fields, 'compare').map(compareOf), write: fieldsIn(fields, 'write').map(writeOf) };
}

/** @throws INVALID */
export function parseRequest(fields: Fields): MapRequest {
  switch (fields['op']) {
    case 'hello':
      return { op: 'hello', pid: numberIn(fields, 'pid') };
    case 'read':
    case 'fresh':
      return { op: fields['op'] };
    case 'transact':
      return {
        op: 'transact',
        transaction: transactionOf(fields['transaction']),
      };
    case 'changes':
      return { op: 'changes', after: numberIn(fields, 'after') };
    case 'lease':
      return { op: 'lease', ttlMs: numberIn(fields, 'ttlMs') };
    case 'renew':
    case 'end':
      return { op: fields['op'], lease: numberIn(fields, 'lease') };
    default:
      return refuse('unknown');
  }
}
