import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { compareBytes, concat, SeededRandom, toHex, utf8 } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { MemoryGroups } from './memory-groups.ts';
import type { ObjectLayer } from './object-layer.ts';
import type { ByteSource, Listing, PutConditions } from './object-store.ts';
import { aLayer, bytesOf, NO_FACTS, SMALL, streamed } from './testing.ts';

const BUCKET = 'bucket';

interface Known {
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly tag: string;
}

function md5(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(createHash('md5').update(concat(parts)).digest());
}

/** What S3 says a store does, as a map in memory, run beside the store. */
class Model {
  readonly known = new Map<string, Known>();

  key(name: string): Known | undefined {
    return this.known.get(name);
  }

  permits(name: string, { ifMatch, ifNoneMatch }: PutConditions): boolean {
    const present = this.known.get(name);
    const named = (tags: readonly string[]): boolean =>
      present !== undefined && (tags.includes('*') || tags.includes(present.etag));
    return (ifMatch === undefined || named(ifMatch)) && (ifNoneMatch === undefined || !named(ifNoneMatch));
  }

  list(options: { prefix: Uint8Array; delimiter?: Uint8Array; after?: Uint8Array; limit: number }): {
    shown: string[];
    more: boolean;
  } {
    const { prefix, delimiter, after, limit } = options;
    const keys = [...this.known.keys()].map((name) => Buffer.from(name, 'latin1'));
    const shown = new Map<string, Buffer>();
    for (const key of keys) {
      if (Buffer.compare(key.subarray(0, prefix.length), prefix) !== 0) continue;
      const at = delimiter === undefined ? -1 : key.indexOf(delimiter, prefix.length);
      const row = at < 0 ? key : key.subarray(0, at + delimiter!.length);
      const text = `${at < 0 ? 'k' : 'p'}${toHex(row)}`;
      if (after === undefined || compareBytes(row, after) > 0) shown.set(text, row);
    }
    // what is collapsed with `after` is not after it
    const afterAt = after && delimiter ? Buffer.from(after).indexOf(delimiter, prefix.length) : -1;
    if (afterAt >= 0) shown.delete(`p${toHex(after!.subarray(0, afterAt + delimiter!.length))}`);
    const rows = [...shown].sort(([, a], [, b]) => Buffer.compare(a, b)).map(([text]) => text);
    return { shown: rows.slice(0, limit), more: rows.length > limit && limit > 0 };
  }
}

/** One random session against a store and the model. */
class Session {
  readonly #layer: ObjectLayer;
  readonly #model = new Model();
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
    this.#layer = aLayer({ groups: new MemoryGroups({ groupBits: 2 }), seed: random.uint32() });
  }

  async run(steps: number): Promise<void> {
    await this.#layer.createBucket(BUCKET, { owner: 'me' });
    const actions = [
      () => this.#put(),
      () => this.#put(),
      () => this.#get(),
      () => this.#get(),
      () => this.#remove(),
      () => this.#copy(),
      () => this.#list(),
      () => this.#list(),
      () => this.#multipart(),
    ];
    for (let step = 0; step < steps; step++) await actions[this.#random.below(actions.length)]!();
    await this.#all();
  }

  /** Few keys that are prefixes of each other and have awkward bytes. */
  #name(): string {
    const letters = ['a', 'b', '/', '\u0000', '\u00ff'];
    return Array.from({ length: 1 + this.#random.below(3) }, () => letters[this.#random.below(5)]!).join('');
  }

  #key(name: string): Uint8Array {
    return new Uint8Array(Buffer.from(name, 'latin1'));
  }

  #bytes(least = 0): Uint8Array {
    const sizes = [0, 1, SMALL.inlineBytes, SMALL.inlineBytes + 1, SMALL.blockBytes, 2 * SMALL.blockBytes + 1];
    const size = this.#random.below(2) === 0 ? sizes[this.#random.below(sizes.length)]! : this.#random.below(1_200);
    return this.#random.bytes(Math.max(least, size));
  }

  #source(bytes: Uint8Array): { body: ByteSource; size?: number } {
    const body = this.#random.below(2) === 0 ? bytes : streamed(bytes, 1 + this.#random.below(300));
    return this.#random.below(2) === 0 ? { body } : { body, size: bytes.length };
  }

  #conditions(name: string): PutConditions {
    const tags = [
      ['*'],
      [this.#model.key(name)?.etag ?? 'x'],
      ['0123'],
      [this.#model.key(this.#name())?.etag ?? 'y', 'z'],
    ];
    const some = tags[this.#random.below(tags.length)]!;
    return [{}, {}, { ifMatch: some }, { ifNoneMatch: some }][this.#random.below(4)]!;
  }

  async #expect(name: string, conditions: PutConditions, action: () => Promise<unknown>): Promise<boolean> {
    if (this.#model.permits(name, conditions)) {
      await action();
      return true;
    }
    await assert.rejects(action(), { code: 'PRECONDITION_FAILED' });
    return false;
  }

  async #put(): Promise<void> {
    const name = this.#name();
    const bytes = this.#bytes();
    const tag = String(this.#random.uint32());
    const conditions = this.#conditions(name);
    const { body, ...size } = this.#source(bytes);
    const facts = { headers: {}, user: { tag } };
    const done = await this.#expect(name, conditions, () =>
      this.#layer.put(BUCKET, this.#key(name), body, { facts, conditions, ...size }),
    );
    if (done) this.#model.known.set(name, { bytes, etag: toHex(md5(bytes)), tag });
  }

  async #get(name = this.#name()): Promise<void> {
    const known = this.#model.key(name);
    const get = this.#layer.get(BUCKET, this.#key(name));
    if (known === undefined) {
      await assert.rejects(get, { code: 'NOT_FOUND' });
      return;
    }
    const whole = await get;
    const { info } = whole;
    assert.deepEqual([info.etag, info.size, info.user['tag']], [known.etag, known.bytes.length, known.tag]);
    assert.deepEqual(await bytesOf(whole), known.bytes);
    const first = this.#random.below(known.bytes.length + 2);
    const last = first + this.#random.below(700);
    const part = this.#layer.get(BUCKET, this.#key(name), { range: { type: 'from', first, last } });
    if (first >= known.bytes.length) await assert.rejects(part, { code: 'RANGE_NOT_SATISFIABLE' });
    else assert.deepEqual(await bytesOf(await part), known.bytes.slice(first, last + 1));
  }

  async #remove(): Promise<void> {
    const name = this.#name();
    const conditions = this.#conditions(name);
    const done = await this.#expect(name, conditions, async () => {
      assert.equal(await this.#layer.remove(BUCKET, this.#key(name), conditions), this.#model.known.has(name));
    });
    if (done) this.#model.known.delete(name);
  }

  async #copy(): Promise<void> {
    const from = this.#name();
    const to = this.#name();
    const known = this.#model.key(from);
    const copy = this.#layer.copy(BUCKET, this.#key(to), { source: { bucket: BUCKET, key: this.#key(from) } });
    if (known === undefined) {
      await assert.rejects(copy, { code: 'NOT_FOUND' });
      return;
    }
    // a copy is stored in one piece, whatever its source was
    const { etag } = await copy;
    assert.equal(etag, toHex(md5(known.bytes)));
    this.#model.known.set(to, { ...known, etag });
  }

  async #multipart(): Promise<void> {
    const name = this.#name();
    const key = this.#key(name);
    const tag = String(this.#random.uint32());
    const { uploadId } = await this.#layer.createUpload(BUCKET, key, { facts: { headers: {}, user: { tag } } });
    const parts: { number: number; etag: string; bytes: Uint8Array }[] = [];
    let number = 0;
    for (let count = 1 + this.#random.below(4); count > 0; count--) {
      number += 1 + this.#random.below(3);
      const bytes = this.#bytes(count > 1 ? SMALL.minPartBytes : 0);
      const { body, ...size } = this.#source(bytes);
      const { etag } = await this.#layer.putPart(BUCKET, key, { uploadId, number }, body, size);
      parts.push({ number, etag, bytes });
    }
    if (this.#random.below(4) === 0) {
      await this.#layer.abortUpload(BUCKET, key, uploadId);
      return;
    }
    const conditions = this.#conditions(name);
    const done = await this.#expect(name, conditions, () =>
      this.#layer.completeUpload(BUCKET, key, uploadId, { parts, conditions }),
    );
    if (!done) return;
    const bytes = concat(parts.map((part) => part.bytes));
    const etag = `${toHex(md5(...parts.map((part) => md5(part.bytes))))}-${parts.length}`;
    this.#model.known.set(name, { bytes, etag, tag });
  }

  async #list(): Promise<void> {
    const some = (): Uint8Array => (this.#random.below(3) === 0 ? this.#key(this.#name()) : new Uint8Array(0));
    const after = some();
    const delimiter = [utf8('/'), utf8('a'), Uint8Array.of(255)][this.#random.below(6)];
    const options = {
      prefix: some(),
      limit: this.#random.below(8),
      ...(delimiter && { delimiter }),
      ...(after.length > 0 && { after }),
    };
    const listing = await this.#layer.list(BUCKET, options);
    const { shown, more } = this.#model.list(options);
    assert.deepEqual(rows(listing), shown);
    assert.equal(listing.next !== undefined, more);
    for (const { key, etag, size } of listing.objects) {
      const known = this.#model.key(Buffer.from(key).toString('latin1'))!;
      assert.deepEqual([etag, size], [known.etag, known.bytes.length]);
    }
  }

  /** Everything, in pages, and every byte. */
  async #all(): Promise<void> {
    const found: string[] = [];
    let after: Uint8Array | undefined;
    do {
      const page: Listing = await this.#layer.list(BUCKET, { limit: 3, ...(after && { after }) });
      found.push(...rows(page));
      after = page.next;
    } while (after !== undefined);
    assert.deepEqual(found, this.#model.list({ prefix: new Uint8Array(0), limit: 1_000 }).shown);
    for (const name of this.#model.known.keys()) await this.#get(name);
  }
}

function rows({ objects, prefixes }: Listing): string[] {
  const all = [...objects.map(({ key }) => ({ kind: 'k', key })), ...prefixes.map((key) => ({ kind: 'p', key }))];
  return all.sort((a, b) => compareBytes(a.key, b.key)).map(({ kind, key }) => `${kind}${toHex(key)}`);
}

test('any session of puts, gets, copies, listings and uploads goes as S3 says', async (t) => {
  const random = randomOf(t);
  for (let i = 0; i < 25; i++) await new Session(new SeededRandom(random.uint32())).run(60);
});

test('two buckets do not see each other', async () => {
  const layer = aLayer();
  await layer.createBucket('one', { owner: 'me' });
  await layer.createBucket('two', { owner: 'me' });
  await layer.put('one', utf8('a'), utf8('1'), { facts: NO_FACTS });
  await assert.rejects(layer.get('two', utf8('a')), { code: 'NOT_FOUND', details: { what: 'key' } });
  assert.deepEqual((await layer.list('two', { limit: 10 })).objects, []);
  await assert.rejects(layer.list('three', { limit: 10 }), { code: 'NOT_FOUND', details: { what: 'bucket' } });
});

test('facts come back as they were given', async () => {
  const layer = aLayer();
  await layer.createBucket(BUCKET, { owner: 'me' });
  const facts = {
    headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
    user: { grüße: '\u{1f600}', empty: '' },
    checksums: { crc32: 'AAAAAA==' },
    checksumType: 'FULL_OBJECT',
  };
  await layer.put(BUCKET, utf8('a'), utf8('x'), { facts });
  const { headers, user, checksums, checksumType } = (await layer.head(BUCKET, utf8('a'))).info;
  assert.deepEqual({ headers, user, checksums, checksumType }, facts);
});

test('facts that are too large are refused before the body is taken', async () => {
  const layer = aLayer();
  await layer.createBucket(BUCKET, { owner: 'me' });
  const facts = { headers: {}, user: { long: 'x'.repeat(13_000) } };
  const body = (async function* body(): AsyncGenerator<Uint8Array> {
    await Promise.resolve();
    yield assert.fail('nobody asks for the body');
  })();
  await assert.rejects(layer.put(BUCKET, utf8('a'), body, { facts }), { code: 'TOO_LARGE' });
});

test('keys have 1 to 1 024 bytes, whatever they are', async () => {
  const layer = aLayer();
  await layer.createBucket(BUCKET, { owner: 'me' });
  const put = (key: Uint8Array): Promise<unknown> => layer.put(BUCKET, key, utf8('x'), { facts: NO_FACTS });
  await put(new Uint8Array(1_024));
  await put(new Uint8Array(1_024).fill(255));
  await assert.rejects(put(new Uint8Array(1_025)), { code: 'TOO_LARGE' });
  await assert.rejects(put(new Uint8Array(0)), { code: 'INVALID' });
  assert.equal((await layer.list(BUCKET, { limit: 10 })).objects.length, 2);
});

test('what check throws ends a get before any block is read', async () => {
  const layer = aLayer();
  await layer.createBucket(BUCKET, { owner: 'me' });
  await layer.put(BUCKET, utf8('a'), new Uint8Array(1_000), { facts: NO_FACTS });
  const check = (): void => {
    throw new RangeError('not today');
  };
  await assert.rejects(layer.get(BUCKET, utf8('a'), { check }), RangeError);
  await assert.rejects(
    layer.copy(BUCKET, utf8('b'), { source: { bucket: BUCKET, key: utf8('a') }, check }),
    RangeError,
  );
});

test('a copy keeps the facts of its source, or has new ones', async () => {
  const layer = aLayer();
  await layer.createBucket(BUCKET, { owner: 'me' });
  const facts = {
    headers: { 'content-type': 'a/b' },
    user: { u: '1' },
    checksums: { crc32: 'AAAAAA==' },
    checksumType: 'FULL_OBJECT',
  };
  await layer.put(BUCKET, utf8('a'), new Uint8Array(1_000), { facts });
  const source = { bucket: BUCKET, key: utf8('a') };
  await layer.copy(BUCKET, utf8('kept'), { source });
  await layer.copy(BUCKET, utf8('new'), { source, facts: { headers: {}, user: { u: '2' } } });
  const kept = (await layer.head(BUCKET, utf8('kept'))).info;
  assert.deepEqual([kept.headers, kept.user, kept.checksums], [facts.headers, facts.user, facts.checksums]);
  const fresh = (await layer.head(BUCKET, utf8('new'))).info;
  // the bytes are the same, so their checksum is
  assert.deepEqual([fresh.headers, fresh.user, fresh.checksums], [{}, { u: '2' }, facts.checksums]);
});

test('a copy is its own: removing the source leaves it whole', async () => {
  const layer = aLayer();
  await layer.createBucket(BUCKET, { owner: 'me' });
  const bytes = new SeededRandom(4).bytes(900);
  await layer.put(BUCKET, utf8('a'), bytes, { facts: NO_FACTS });
  await layer.copy(BUCKET, utf8('b'), { source: { bucket: BUCKET, key: utf8('a') } });
  await layer.remove(BUCKET, utf8('a'));
  assert.deepEqual(await bytesOf(await layer.get(BUCKET, utf8('b'))), bytes);
});

test('a part of a multipart object is a range of it', async () => {
  const layer = aLayer();
  await layer.createBucket(BUCKET, { owner: 'me' });
  const key = utf8('a');
  const { uploadId } = await layer.createUpload(BUCKET, key, { facts: NO_FACTS });
  const parts = [];
  for (const [number, size] of [
    [2, 300],
    [5, 700],
    [9, 1],
  ] as const) {
    const { etag } = await layer.putPart(BUCKET, key, { uploadId, number }, new Uint8Array(size).fill(number), {});
    parts.push({ number, etag });
  }
  await layer.completeUpload(BUCKET, key, uploadId, { parts });
  const part = await layer.get(BUCKET, key, { range: { type: 'part', number: 5 } });
  assert.deepEqual([part.offset, part.length, part.info.parts], [300, 700, 3]);
  assert.deepEqual(await bytesOf(part), new Uint8Array(700).fill(5));
  await assert.rejects(layer.get(BUCKET, key, { range: { type: 'part', number: 3 } }), {
    code: 'RANGE_NOT_SATISFIABLE',
  });
});
