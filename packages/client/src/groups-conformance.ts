import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chunkSums, compareBytes, concat, EMPTY, type PolicyId, SeededRandom, toHex, utf8 } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { hashKey } from '@webdfs/placement';
import {
  type ListPage,
  type ListRow,
  packOwner,
  packSummary,
  type ReadAnswer,
  type WriteAnswer,
  type WriteRequest,
} from '@webdfs/replica';
import type { Groups } from './groups.ts';

/** Groups to be tried, empty, and the policy to use. */
export interface GroupsHouse extends AsyncDisposable {
  readonly groups: Groups;
  readonly policy: PolicyId;
}

const BUCKET = 7;
const NO_UPLOAD = new Uint8Array(16);
/** Larger than a piece and no multiple of the checksum's unit. */
const BLOCK = 1_500_001;

function keyFor(name: string, bucket = BUCKET): Uint8Array {
  const prefix = new Uint8Array(4);
  new DataView(prefix.buffer).setUint32(0, bucket);
  return concat([prefix, utf8(name)]);
}

/** An ETag of 16 equal bytes, and its text. */
function etag(byte: number): { bytes: Uint8Array; text: string } {
  const bytes = new Uint8Array(16).fill(byte);
  return { bytes, text: toHex(bytes) };
}

/** Speaks to groups as the object layer does, in few words. */
class Speaker {
  readonly #house: GroupsHouse;
  readonly #random: SeededRandom;

  constructor(house: GroupsHouse, random: SeededRandom) {
    this.#house = house;
    this.#random = random;
  }

  requestId(): Uint8Array {
    return this.#random.bytes(16);
  }

  /** A put of `name` whose ETag and body are made of `value`. Rows that belong together share the hash of `beside`. */
  put(name: string, value: number, more: Partial<WriteRequest> & { beside?: string } = {}): WriteRequest {
    const { beside = name, ...rest } = more;
    const { high, low } = hashKey(keyFor(beside));
    return {
      ...this.#house.groups.groupOf(this.#house.policy, high),
      requestId: this.requestId(),
      ageMs: 0,
      kind: 'put',
      key: keyFor(name),
      hashHigh: high,
      hashLow: low,
      conditions: {},
      requires: [],
      summary: packSummary({ size: value, etag: etag(value).bytes, parts: 0, flags: 0 }),
      owner: packOwner({ type: 'inline' }, `facts ${value}`).owner,
      body: new Uint8Array(value).fill(value),
      ...rest,
    };
  }

  delete(name: string, more: Partial<WriteRequest> & { beside?: string } = {}): WriteRequest {
    return { ...this.put(name, 0, more), kind: 'delete', summary: EMPTY, owner: EMPTY, body: EMPTY };
  }

  write(request: WriteRequest): Promise<WriteAnswer> {
    return this.#house.groups.write(request);
  }

  read(name: string, options: { entry?: boolean; beside?: string } = {}): Promise<ReadAnswer | undefined> {
    const { entry = true, beside = name } = options;
    const group = this.#house.groups.groupOf(this.#house.policy, hashKey(keyFor(beside)).high);
    return this.#house.groups.read({ ...group, key: keyFor(name), entry });
  }

  /** The value put last, undefined if there is none. */
  async value(name: string, beside = name): Promise<number | undefined> {
    return (await this.read(name, { beside }))?.body.length;
  }

  /** All rows of a listing, read in pages of `take`, and how many pages that took. */
  async list(
    options: { from?: string; before?: string; take?: number; collapse?: { prefix: string; delimiter: string } } = {},
  ): Promise<ListRow[]> {
    const { from = '', before, take = 1_000, collapse } = options;
    const rows: ListRow[] = [];
    for (let at: Uint8Array | undefined = keyFor(from); at !== undefined;) {
      const page: ListPage = await this.#house.groups.list({
        policy: this.#house.policy,
        from: at,
        before: before === undefined ? keyFor('', BUCKET + 1) : keyFor(before),
        take,
        ...(collapse && {
          collapse: { prefixLength: keyFor(collapse.prefix).length, delimiter: utf8(collapse.delimiter) },
        }),
      });
      assert.ok(page.rows.length <= take, 'a page is no longer than asked for');
      assert.ok(page.rows.length > 0 || rows.length === 0, 'what is said to follow a page is there');
      rows.push(...page.rows);
      at = page.next;
    }
    return rows;
  }
}

function nameOf(row: ListRow): string {
  return Buffer.from(row.key.subarray(4)).toString();
}

type Open = () => Promise<GroupsHouse>;

function testRecords(house: string, open: Open): void {
  test(`${house}: a record is read as it was written, and only where it was`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const request = speaker.put('a', 5);
    const { sequence, modifiedMs, replaced } = await speaker.write(request);
    const read = await speaker.read('a');
    assert.deepEqual(
      { sequence, modifiedMs, summary: request.summary, owner: request.owner, body: request.body },
      {
        sequence: read!.sequence,
        modifiedMs: read!.modifiedMs,
        summary: Uint8Array.from(read!.summary),
        owner: Uint8Array.from(read!.owner),
        body: Uint8Array.from(read!.body),
      },
    );
    assert.equal(replaced, undefined);
    assert.equal(await speaker.read('b'), undefined);
  });

  test(`${house}: a row alone comes without the bytes`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const { sequence } = await speaker.write(speaker.put('a', 5));
    const row = await speaker.read('a', { entry: false });
    assert.equal(row!.sequence, sequence);
    assert.equal(row!.body.length + row!.owner.length, 0);
  });

  test(`${house}: each write of a key has a larger sequence, and tells what it replaced`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const first = await speaker.write(speaker.put('a', 1));
    const second = await speaker.write(speaker.put('a', 2));
    assert.ok(second.sequence > first.sequence);
    assert.equal(second.replaced!.sequence, first.sequence);
    assert.deepEqual(Uint8Array.from(second.replaced!.summary), speaker.put('a', 1).summary);
    const gone = await speaker.write(speaker.delete('a'));
    assert.equal(gone.replaced!.sequence, second.sequence);
    assert.equal(await speaker.read('a'), undefined);
    assert.equal((await speaker.write(speaker.delete('a'))).replaced, undefined);
    const again = await speaker.write(speaker.put('a', 3));
    assert.ok(again.sequence > second.sequence);
    assert.equal(again.replaced, undefined);
  });

  test(`${house}: what the caller does with its buffers afterwards changes no record`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const request = speaker.put('a', 9);
    await speaker.write(request);
    request.body.fill(0);
    request.owner.fill(0);
    assert.deepEqual(Uint8Array.from((await speaker.read('a'))!.body), new Uint8Array(9).fill(9));
  });
}

function testConditions(house: string, open: Open): void {
  test(`${house}: If-None-Match * writes only where nothing is`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    await speaker.write(speaker.put('a', 1, { conditions: { ifNoneMatch: ['*'] } }));
    const second = speaker.write(speaker.put('a', 2, { conditions: { ifNoneMatch: ['*'] } }));
    await assert.rejects(second, { code: 'PRECONDITION_FAILED' });
    assert.equal(await speaker.value('a'), 1);
  });

  test(`${house}: If-Match writes only over the ETag that it names`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const replace = (value: number, tags: string[]): Promise<WriteAnswer> =>
      speaker.write(speaker.put('a', value, { conditions: { ifMatch: tags } }));
    await assert.rejects(replace(1, ['*']), { code: 'PRECONDITION_FAILED', details: { exists: false } });
    await speaker.write(speaker.put('a', 1));
    await assert.rejects(replace(2, [etag(9).text]), { code: 'PRECONDITION_FAILED', details: { exists: true } });
    await assert.rejects(replace(2, []), { code: 'PRECONDITION_FAILED' });
    await replace(2, [etag(9).text, etag(1).text]);
    await replace(3, ['*']);
    const none = speaker.put('a', 4, { conditions: { ifNoneMatch: [etag(3).text] } });
    await assert.rejects(speaker.write(none), { code: 'PRECONDITION_FAILED' });
    await speaker.write(speaker.put('a', 5, { conditions: { ifNoneMatch: [etag(4).text] } }));
    await assert.rejects(speaker.write(speaker.delete('a', { conditions: { ifMatch: [etag(4).text] } })), {
      code: 'PRECONDITION_FAILED',
    });
    assert.equal(await speaker.value('a'), 5);
  });

  test(`${house}: of many that create one key at once, one wins`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const racers = Array.from({ length: 8 }, (_, i) =>
      speaker.write(speaker.put('a', i + 1, { conditions: { ifNoneMatch: ['*'] } })),
    );
    const outcomes = await Promise.allSettled(racers);
    const won = outcomes.flatMap((outcome, i) => (outcome.status === 'fulfilled' ? [i + 1] : []));
    assert.equal(won.length, 1);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'PRECONDITION_FAILED');
    }
    assert.equal(await speaker.value('a'), won[0]);
  });

  test(`${house}: of many that replace one version at once, one wins each round`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    await speaker.write(speaker.put('a', 1));
    for (let round = 1; round < 6; round++) {
      const racers = Array.from({ length: 4 }, () =>
        speaker.write(speaker.put('a', round + 1, { conditions: { ifMatch: [etag(round).text] } })),
      );
      const outcomes = await Promise.allSettled(racers);
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
    }
    assert.equal(await speaker.value('a'), 6);
  });
}

function testRequirements(house: string, open: Open): void {
  test(`${house}: a write happens only if the other keys are as required`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const { sequence } = await speaker.write(speaker.put('a#row', 1, { beside: 'a' }));
    const write = (name: string, required: number): Promise<WriteAnswer> =>
      speaker.write(speaker.put('a', 2, { requires: [{ key: keyFor(name), sequence: required }] }));
    await assert.rejects(write('a#none', -1), { code: 'CONFLICT' });
    await assert.rejects(write('a#none', 1), { code: 'CONFLICT' });
    await assert.rejects(write('a#row', 0), { code: 'CONFLICT' });
    await assert.rejects(write('a#row', sequence + 1), { code: 'CONFLICT' });
    assert.equal(await speaker.read('a'), undefined);
    await write('a#none', 0);
    await write('a#row', -1);
    await write('a#row', sequence);
    assert.equal(await speaker.value('a'), 2);
  });

  test(`${house}: a key may require its own version`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const { sequence } = await speaker.write(speaker.put('a', 1));
    const replace = (seen: number): Promise<WriteAnswer> =>
      speaker.write(speaker.put('a', 2, { requires: [{ key: keyFor('a'), sequence: seen }] }));
    await replace(sequence);
    await assert.rejects(replace(sequence), { code: 'CONFLICT' });
    const remove = speaker.delete('a', { requires: [{ key: keyFor('a'), sequence }] });
    await assert.rejects(speaker.write(remove), { code: 'CONFLICT' });
    assert.equal(await speaker.value('a'), 2);
  });

  test(`${house}: a write closes another key in the same step`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    await speaker.write(speaker.put('a#row', 1, { beside: 'a' }));
    const closing = { closes: keyFor('a#row'), requires: [{ key: keyFor('a#row'), sequence: -1 }] };
    const racers = [2, 3].map((value) => speaker.write(speaker.put('a', value, closing)));
    const outcomes = await Promise.allSettled(racers);
    const won = outcomes.findIndex(({ status }) => status === 'fulfilled') + 2;
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
    assert.equal(await speaker.value('a'), won);
    assert.equal(await speaker.read('a#row', { beside: 'a' }), undefined);
    assert.deepEqual((await speaker.list()).map(nameOf), ['a']);
  });

  test(`${house}: a failed write closes nothing`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    await speaker.write(speaker.put('a', 1));
    await speaker.write(speaker.put('a#row', 1, { beside: 'a' }));
    const request = speaker.put('a', 2, { closes: keyFor('a#row'), conditions: { ifNoneMatch: ['*'] } });
    await assert.rejects(speaker.write(request), { code: 'PRECONDITION_FAILED' });
    assert.equal(await speaker.value('a#row', 'a'), 1);
  });
}

function testOnce(house: string, open: Open): void {
  test(`${house}: a repeated request gets the first answer and does nothing again`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const request = speaker.put('a', 1);
    const first = await speaker.write(request);
    await speaker.write(speaker.put('a', 2));
    const again = await speaker.write({ ...request, ageMs: 500 });
    assert.equal(again.sequence, first.sequence);
    assert.equal(await speaker.value('a'), 2, 'a late repeat does not bring the old value back');
  });

  test(`${house}: a repeated conditional create is answered as the success it was`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const request = speaker.put('a', 1, { conditions: { ifNoneMatch: ['*'] } });
    const first = await speaker.write(request);
    const again = await speaker.write({ ...request, ageMs: 1 });
    assert.equal(again.sequence, first.sequence);
  });

  test(`${house}: a request sent twice at once happens once`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const request = speaker.put('a', 1, { conditions: { ifNoneMatch: ['*'] } });
    const [one, other] = await Promise.all([speaker.write(request), speaker.write(request)]);
    assert.equal(one.sequence, other.sequence);
  });
}

function testListing(house: string, open: Open): void {
  test(`${house}: a listing has all keys of its range in the order of their bytes, whatever the page`, async (t) => {
    await using groups = await open();
    const random = randomOf(t);
    const speaker = new Speaker(groups, random);
    const names = new Set<string>();
    while (names.size < 60) {
      names.add(Array.from({ length: 1 + random.below(5) }, () => 'ab/\u0001\u00e9~'[random.below(6)]).join(''));
    }
    for (const name of names) await speaker.write(speaker.put(name, 1));
    const gone = [...names][7]!;
    await speaker.write(speaker.delete(gone));
    names.delete(gone);
    const sorted = [...names].sort((a, b) => compareBytes(utf8(a), utf8(b)));
    for (const take of [1, 7, 1_000]) assert.deepEqual((await speaker.list({ take })).map(nameOf), sorted);
    const from = sorted[10]!;
    const before = sorted[40]!;
    assert.deepEqual((await speaker.list({ from, before, take: 9 })).map(nameOf), sorted.slice(10, 40));
  });

  test(`${house}: rows of a listing are those that a read gives`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    await speaker.write(speaker.put('a', 1));
    await speaker.write(speaker.put('a', 4));
    const [row] = await speaker.list();
    const read = await speaker.read('a');
    assert.equal(row!.sequence, read!.sequence);
    assert.equal(row!.modifiedMs, read!.modifiedMs);
    assert.deepEqual(Uint8Array.from(row!.summary), Uint8Array.from(read!.summary));
  });

  test(`${house}: keys that share their bytes up to a delimiter come as one prefix`, async (t) => {
    await using groups = await open();
    const speaker = new Speaker(groups, randomOf(t));
    const names = ['a', 'a/', 'a//b', 'a/b', 'a/b/c', 'a/c', 'b', 'c/1', 'c/2', 'c/3', 'd//', 'e', 'f/1', 'f/2'];
    for (const name of names) await speaker.write(speaker.put(name, 1));
    for (const take of [1, 2, 3, 1_000]) {
      const top = await speaker.list({ take, collapse: { prefix: '', delimiter: '/' } });
      assert.deepEqual(
        top.map((row) => [nameOf(row), row.prefix]),
        [
          ['a', false],
          ['a/', true],
          ['b', false],
          ['c/', true],
          ['d/', true],
          ['e', false],
          ['f/', true],
        ],
      );
      const inside = await speaker.list({ from: 'a/', before: 'a0', take, collapse: { prefix: 'a/', delimiter: '/' } });
      assert.deepEqual(
        inside.map((row) => [nameOf(row), row.prefix]),
        [
          ['a/', false],
          ['a//', true],
          ['a/b', false],
          ['a/b/', true],
          ['a/c', false],
        ],
      );
    }
    const long = await speaker.list({ take: 2, collapse: { prefix: '', delimiter: '//' } });
    assert.deepEqual(long.filter((row) => row.prefix).map(nameOf), ['a//', 'd//']);
  });
}

const HEADER = { key: keyFor('a'), uploadId: NO_UPLOAD };

/** Reads a range of a block; its pieces are held to what every house promises of them. */
async function readRange(
  groups: GroupsHouse,
  id: Uint8Array,
  range: { offset: number; length: number },
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const piece of groups.groups.readBlock(groups.policy, id, range)) {
    assert.ok(piece.bytes.length > 0 && piece.bytes.length <= 1_048_576, `a piece of ${piece.bytes.length} bytes`);
    parts.push(piece.bytes.slice());
    piece.release();
  }
  return concat(parts);
}

function testBlocks(house: string, open: Open): void {
  test(`${house}: any range of a block comes back as it was written, in pieces of at most 1 MiB`, async (t) => {
    await using groups = await open();
    const random = randomOf(t);
    const bytes = random.bytes(BLOCK);
    const id = random.bytes(20);
    const upload = groups.groups.putBlock(groups.policy, id, HEADER);
    for (let at = 0; at < BLOCK;) {
      const end = Math.min(BLOCK, at + 1 + random.below(200_000));
      await upload.write(bytes.slice(at, end));
      at = end;
    }
    const { size, sums } = await upload.finish();
    assert.equal(size, BLOCK);
    assert.deepEqual(Uint32Array.from(sums), chunkSums(bytes));
    const ranges = [
      [0, BLOCK],
      [0, 1],
      [BLOCK - 1, 1],
      [65_535, 2],
      [65_536, 65_536],
      [1_000_000, 500_001],
    ];
    for (const [offset, length] of ranges as [number, number][]) {
      assert.ok(
        Buffer.from(await readRange(groups, id, { offset, length })).equals(bytes.subarray(offset, offset + length)),
      );
    }
  });

  test(`${house}: blocks side by side do not mix`, async (t) => {
    await using groups = await open();
    const random = randomOf(t);
    const blocks = await Promise.all(
      Array.from({ length: 6 }, async (_, i) => {
        const id = random.bytes(20);
        const upload = groups.groups.putBlock(groups.policy, id, HEADER);
        for (let chunk = 0; chunk < 5; chunk++) await upload.write(new Uint8Array(70_000).fill(i));
        await upload.finish();
        return id;
      }),
    );
    for (const [i, id] of blocks.entries()) {
      assert.deepEqual(await readRange(groups, id, { offset: 0, length: 350_000 }), new Uint8Array(350_000).fill(i));
    }
  });
}

function testBlockEnds(house: string, open: Open): void {
  test(`${house}: a block that was given up, or never was, is not found`, async (t) => {
    await using groups = await open();
    const random = randomOf(t);
    const id = random.bytes(20);
    const upload = groups.groups.putBlock(groups.policy, id, HEADER);
    await upload.write(new Uint8Array(1_000));
    upload.abort();
    upload.abort();
    await assert.rejects(readRange(groups, id, { offset: 0, length: 1 }), { code: 'NOT_FOUND' });
    await assert.rejects(readRange(groups, random.bytes(20), { offset: 0, length: 1 }), { code: 'NOT_FOUND' });
  });

  test(`${house}: a reader may stop early`, async (t) => {
    await using groups = await open();
    const random = randomOf(t);
    const id = random.bytes(20);
    const upload = groups.groups.putBlock(groups.policy, id, HEADER);
    await upload.write(random.bytes(BLOCK));
    await upload.finish();
    for await (const piece of groups.groups.readBlock(groups.policy, id, { offset: 0, length: BLOCK })) {
      piece.release();
      break;
    }
    assert.equal((await readRange(groups, id, { offset: 5, length: 5 })).length, 5);
  });
}

/** What the object layer relies on, for every house of `Groups`. `open` gives empty groups each time. */
export function testGroups(house: string, open: Open): void {
  testRecords(house, open);
  testConditions(house, open);
  testRequirements(house, open);
  testOnce(house, open);
  testListing(house, open);
  testBlocks(house, open);
  testBlockEnds(house, open);
}
