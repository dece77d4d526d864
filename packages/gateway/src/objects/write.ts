import type { ObjectFacts, ObjectStore, PutResult } from '@webdfs/client';
import type { Exchange } from '../http/exchange.ts';
import { MAX_KEY_BYTES } from '../http/limits.ts';
import { Refusal } from '../refusal.ts';
import type { Payload } from '../s3/payload.ts';
import { writeConditions } from './conditions.ts';

export interface ObjectWrite {
  readonly exchange: Exchange;
  readonly store: ObjectStore;
  readonly bucket: string;
  readonly key: Uint8Array;
  readonly facts: ObjectFacts;
  readonly payload: Payload;
}

/** @throws Refusal KeyTooLongError */
export function checkKey(key: Uint8Array): void {
  if (key.length <= MAX_KEY_BYTES) return;
  const fields = { Size: String(key.length), MaxSizeAllowed: String(MAX_KEY_BYTES) };
  throw new Refusal('KeyTooLongError', undefined, { fields });
}

/** Stores an object, for both doors. Of a request that waits for `100 Continue`, all that can be refused is, first. */
export async function writeObject(write: ObjectWrite): Promise<PutResult> {
  const { exchange, store, bucket, key, facts, payload } = write;
  checkKey(key);
  const conditions = writeConditions(exchange.headers);
  if (exchange.waitsForContinue) await checkFirst(write, conditions?.ifNoneMatch !== undefined);
  return await store.put(bucket, key, await payload.source(), {
    facts,
    size: payload.size,
    verify: payload.verify,
    signal: exchange.signal,
    ...(conditions && { conditions }),
  });
}

/** The bucket is there, and a key that must not be there is not: the object layer will ask again, atomically. */
async function checkFirst({ store, bucket, key }: ObjectWrite, mustBeNew: boolean): Promise<void> {
  await store.bucket(bucket);
  if (!mustBeNew) return;
  const taken = await store.list(bucket, { prefix: key, limit: 1 });
  const [first] = taken.objects;
  if (first !== undefined && Buffer.compare(first.key, key) === 0) throw new Refusal('PreconditionFailed');
}
