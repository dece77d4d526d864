import { codeOf, sleep, WebdfsError } from '@webdfs/base';
import { checkBucketName } from './bucket-names.ts';
import { alreadyExists, type BucketRecord, BucketRecords } from './bucket-records.ts';
import { BUCKET_CACHE, BUCKET_TTL_MS, DELETING_MS, SWAP_TRIES, WRITE_SETTLE_MS } from './limits.ts';
import type { Bucket } from './object-store.ts';
import type { ObjectSeams, RecordStore } from './record-store.ts';

/**
 * Tells every other gateway that a bucket has changed. True once each has forgotten it and its writes under way there have
 * ended (`Buckets.changed`); false if one may not have heard: then the caller waits out their caches.
 */
export type BucketAnnouncer = (name: string) => Promise<boolean>;

interface Remembered {
  readonly bucket: Bucket;
  readonly untilMs: number;
}

/**
 * Buckets by name, remembered for a short time, and the rule that makes their removal safe: a record is written only inside
 * `writing`, which holds the bucket; whoever deletes a bucket marks it first, tells all gateways, and looks whether it is empty
 * only when no write that saw it unmarked is left.
 */
export class Buckets {
  readonly #records: BucketRecords;
  readonly #seams: ObjectSeams;
  readonly #announce: BucketAnnouncer;
  readonly #isEmpty: (bucket: Bucket) => Promise<boolean>;
  readonly #remembered = new Map<string, Remembered>();
  /** Writes under way by bucket name, and who waits for their end. */
  readonly #writes = new Map<string, { count: number; ended: (() => void)[] }>();
  /** Look-ups under way that began before a change must not be remembered. */
  #changes = 0;

  constructor(
    records: RecordStore,
    options: { announce?: BucketAnnouncer | undefined; isEmpty: (bucket: Bucket) => Promise<boolean> },
  ) {
    this.#records = new BucketRecords(records);
    this.#seams = records.seams;
    this.#announce = options.announce ?? (async () => await Promise.resolve(true));
    this.#isEmpty = options.isEmpty;
  }

  /** @throws NOT_FOUND, `details.what` = bucket */
  async find(name: string): Promise<Bucket> {
    return this.#remember(name) ?? (await this.#lookUp(name)).bucket;
  }

  /**
   * Writes into a bucket: `action` runs while the bucket is known to exist and cannot vanish.
   *
   * @throws NOT_FOUND if it is gone, or another of the same name is there by now; BUSY while it is being deleted
   */
  async writing<T>(bucket: Bucket, action: () => Promise<T>): Promise<T> {
    for (;;) {
      const changes = this.#changes;
      const remembered = this.#remember(bucket.name);
      const present = remembered ?? (await this.#writable(bucket.name));
      if (present.id !== bucket.id) throw noBucket(bucket.name);
      // a change that came during the look-up may have counted the writes already
      if (remembered !== undefined || changes === this.#changes) break;
    }
    const writes = this.#writes.get(bucket.name) ?? { count: 0, ended: [] };
    this.#writes.set(bucket.name, writes);
    writes.count++;
    try {
      return await action();
    } finally {
      if (--writes.count === 0) {
        this.#writes.delete(bucket.name);
        for (const ended of writes.ended) ended();
      }
    }
  }

  /** Another gateway has changed a bucket: forgets it, and resolves when no write that trusted the memory is left. */
  async changed(name: string): Promise<void> {
    this.#changes++;
    this.#remembered.delete(name);
    const writes = this.#writes.get(name);
    if (writes !== undefined) await new Promise<void>((resolve) => writes.ended.push(resolve));
  }

  async list(): Promise<Bucket[]> {
    return (await this.#records.list()).map(({ bucket }) => bucket);
  }

  /** @throws INVALID, ALREADY_EXISTS */
  async create(name: string, options: { owner: string; access?: Bucket['access']; region?: string }): Promise<Bucket> {
    checkBucketName(name);
    if ((await this.#records.read(name)) !== undefined) throw alreadyExists(name);
    const { owner, access = 'private', region = 'us-east-1' } = options;
    const id = await this.#records.freshId();
    const { bucket } = await this.#records.create({
      id,
      name,
      createdMs: this.#seams.clock.now(),
      owner,
      access,
      region,
    });
    return bucket;
  }

  async setAccess(name: string, access: Bucket['access']): Promise<Bucket> {
    for (let tries = 0; tries < SWAP_TRIES; tries++) {
      const record = await this.#unmarked(name);
      const replaced = await passConflict(this.#records.replace(record, { ...record.bucket, access }));
      if (replaced === undefined) continue;
      await this.#tellAll(name, BUCKET_TTL_MS);
      return replaced.bucket;
    }
    throw new WebdfsError('BUSY', `bucket ${name} is being changed by others`, { retryAfterMs: 100 });
  }

  /**
   * Removes an empty bucket.
   *
   * @throws NOT_FOUND, NOT_EMPTY, BUSY if somebody else is deleting or changing it
   */
  async delete(name: string): Promise<Bucket> {
    const { bucket } = await this.#unmarked(name);
    // mostly decides it, without a mark that would hold up writers
    if (!(await this.#isEmpty(bucket))) throw notEmpty(name);
    const record = await this.#unmarked(name);
    const marked = await passConflict(this.#records.replace(record, record.bucket, this.#seams.clock.now()));
    if (marked === undefined) throw beingDeleted(name);
    let emptied = false;
    try {
      await this.#tellAll(name, BUCKET_TTL_MS + WRITE_SETTLE_MS);
      emptied = await this.#isEmpty(record.bucket);
    } finally {
      if (!emptied) await passConflict(this.#records.replace(marked, record.bucket));
    }
    if (!emptied) throw notEmpty(name);
    if ((await passConflict(this.#records.remove(marked).then(() => true))) === undefined) throw beingDeleted(name);
    await this.changed(name);
    return record.bucket;
  }

  /** Every gateway, this one too, has forgotten the bucket when this resolves. */
  async #tellAll(name: string, elseWaitMs: number): Promise<void> {
    const [all] = await Promise.all([this.#announce(name), this.changed(name)]);
    if (!all) await sleep(this.#seams.clock, elseWaitMs);
  }

  #remember(name: string): Bucket | undefined {
    const remembered = this.#remembered.get(name);
    if (remembered === undefined) return undefined;
    if (this.#seams.clock.monotonic() < remembered.untilMs) return remembered.bucket;
    this.#remembered.delete(name);
    return undefined;
  }

  async #lookUp(name: string): Promise<BucketRecord> {
    const changes = this.#changes;
    const untilMs = this.#seams.clock.monotonic() + BUCKET_TTL_MS;
    const record = await this.#records.read(name);
    if (record === undefined) throw noBucket(name);
    if (record.deletingMs === undefined && changes === this.#changes) {
      if (this.#remembered.size >= BUCKET_CACHE) {
        const [oldest] = this.#remembered.keys();
        this.#remembered.delete(oldest!);
      }
      this.#remembered.set(name, { bucket: record.bucket, untilMs });
    }
    return record;
  }

  async #writable(name: string): Promise<Bucket> {
    const record = await this.#lookUp(name);
    return record.deletingMs === undefined ? record.bucket : (await this.#unmarked(name)).bucket;
  }

  /** The record without a mark; takes away one that was left behind. @throws NOT_FOUND, BUSY */
  async #unmarked(name: string): Promise<BucketRecord> {
    const record = await this.#records.read(name);
    if (record === undefined) throw noBucket(name);
    if (record.deletingMs === undefined) return record;
    if (this.#seams.clock.now() - record.deletingMs < DELETING_MS) throw beingDeleted(name);
    const freed = await passConflict(this.#records.replace(record, record.bucket));
    if (freed === undefined) throw beingDeleted(name);
    return freed;
  }
}

/** Undefined where the record is not the one that was seen any more. */
async function passConflict<T>(swap: Promise<T>): Promise<T | undefined> {
  try {
    return await swap;
  } catch (error) {
    if (codeOf(error) === 'CONFLICT') return undefined;
    throw error;
  }
}

function noBucket(name: string): WebdfsError {
  return new WebdfsError('NOT_FOUND', `no bucket ${name}`, { details: { what: 'bucket' } });
}

function notEmpty(name: string): WebdfsError {
  return new WebdfsError('NOT_EMPTY', `bucket ${name} still holds objects`, { details: { what: 'bucket' } });
}

function beingDeleted(name: string): WebdfsError {
  return new WebdfsError('BUSY', `bucket ${name} is being deleted or changed`, { retryAfterMs: 500 });
}
