import assert from 'node:assert/strict';
import test from 'node:test';
import { asNodeId, codeOf, fromUtf8, SeededRandom, utf8, WebdfsError } from '@webdfs/base';
import type { Store } from '@webdfs/store';
import type { Incoming, Link } from '@webdfs/wire';
import { decodePutBlockAnswer, encodePutBlock, encodeReadBlock } from './block-codec.ts';
import { ReadBuffers } from './read-buffers.ts';
import { decodeReadAnswer, encodeReadRequest, encodeWriteRequest, decodeWriteAnswer } from './request-codec.ts';
import { aDelete, aKey, aPut, type BedNode, TestBed } from './test-bed.ts';
import { VERB } from './verbs.ts';

const DEADLINE = { deadlineMs: 10_000 };

test('an acknowledged write is on the disk of every member, and its primary reads it', async () => {
  await using bed = await TestBed.open();
  const put = aPut(bed, 'a', 'hello');
  const { sequence } = await bed.write(put);
  for (const { store } of bed.nodes.values()) assert.equal(store.log(put).last, sequence);
  const primary = bed.primaryOf(put);
  const read = await bed.until(primary.engine.read({ ...bed.groupOf(put.key), key: put.key, entry: true }));
  assert.equal(fromUtf8(read!.body), 'hello');
  assert.deepEqual(read!.owner, put.owner);
  assert.deepEqual(bed.fatal, []);
});

test('members learn the commit point though nothing more is written', async () => {
  await using bed = await TestBed.open();
  const put = aPut(bed, 'a', 'hello');
  const { sequence } = await bed.write(put);
  await bed.when(() => [...bed.nodes.values()].every(({ store }) => store.log(put).commit === sequence));
});

test('writes and reads come over the wire as well, and a node that is not primary names its revision', async () => {
  await using bed = await TestBed.open();
  const put = aPut(bed, 'a', 'hello');
  const primary = bed.primaryOf(put);
  const other = [...bed.nodes.values()].find(({ id }) => id !== primary.id)!;
  const link = other.transport.link(primary.id);
  await bed.when(() => other.transport.alive(primary.id));
  const written = await bed.until(link.call(VERB.WRITE, encodeWriteRequest(put, other.map.view.revision), DEADLINE));
  const { sequence } = decodeWriteAnswer(written);
  const question = encodeReadRequest({ ...bed.groupOf(put.key), key: put.key, entry: true }, 0);
  const read = decodeReadAnswer(await bed.until(link.call(VERB.READ, question, DEADLINE)));
  assert.equal(read!.sequence, sequence);
  const refusal: unknown = await bed.until(other.engine.write(put)).catch((error: unknown) => error);
  assert.ok(refusal instanceof WebdfsError && refusal.code === 'NOT_PRIMARY');
  assert.equal(refusal.details['revision'], other.map.view.revision);
});

test('a request that is tried again is answered the same and done once', async () => {
  await using bed = await TestBed.open();
  await bed.write(aPut(bed, 'a', 'first'));
  const put = aPut(bed, 'a', 'second');
  const [one, two] = await Promise.all([bed.write(put), bed.write(put)]);
  const three = await bed.write(put);
  assert.deepEqual(two, one);
  assert.deepEqual(three, one);
  assert.equal(one.replaced!.sequence, one.sequence - 1);
  assert.equal(bed.primaryOf(put).store.log(put).last, one.sequence);
});

test('of many that create one key at once, one succeeds', async () => {
  await using bed = await TestBed.open();
  const puts = Array.from({ length: 8 }, (_, i) => aPut(bed, 'a', `${i}`, { conditions: { ifNoneMatch: ['*'] } }));
  const primary = bed.primaryOf(puts[0]!);
  await bed.when(() => primary.engine.serving(puts[0]!) > 0);
  const results = await bed.until(Promise.allSettled(puts.map((put) => primary.engine.write(put))));
  const failed = results.flatMap((result) => (result.status === 'rejected' ? [codeOf(result.reason)] : []));
  assert.deepEqual(
    failed,
    Array.from({ length: 7 }, () => 'PRECONDITION_FAILED'),
  );
});

test('a delete says whether the key was there, and of nothing writes nothing', async () => {
  await using bed = await TestBed.open();
  const put = aPut(bed, 'a', 'x');
  const { sequence } = await bed.write(put);
  const gone = await bed.write(aDelete(bed, 'a'));
  assert.equal(gone.replaced!.sequence, sequence);
  const again = await bed.write(aDelete(bed, 'a'));
  assert.equal(again.replaced, undefined);
  assert.equal(bed.primaryOf(put).store.log(put).last, gone.sequence);
  const read = await bed.until(bed.primaryOf(put).engine.read({ ...bed.groupOf(put.key), key: put.key, entry: true }));
  assert.equal(read, undefined);
});

test('a primary whose lease has run out answers neither reads nor refusals', async () => {
  await using bed = await TestBed.open();
  const put = aPut(bed, 'a', 'x');
  await bed.write(put);
  const primary = bed.primaryOf(put);
  primary.lease.isHeld = false;
  const read = primary.engine.read({ ...bed.groupOf(put.key), key: put.key, entry: false });
  await assert.rejects(bed.until(read), (error) => codeOf(error) === 'UNAVAILABLE');
  const create = aPut(bed, 'a', 'y', { conditions: { ifNoneMatch: ['*'] } });
  await assert.rejects(bed.until(primary.engine.write(create)), (error) => codeOf(error) === 'UNAVAILABLE');
});

test('when the primary dies the next takes over, keeps all, and does a retried write once', async () => {
  await using bed = await TestBed.open();
  const puts = Array.from({ length: 20 }, (_, i) => aPut(bed, `k${i}`, `v${i}`));
  await Promise.all(puts.map((put) => bed.write(put)));
  const victim = bed.primaryOf(puts[0]!).id;
  const late = aPut(bed, 'k0', 'late');
  const first = bed.primaryOf(late).engine.write(late);
  first.catch(() => undefined);
  await bed.pass(2);
  await bed.kill(victim);
  await bed.markDown(victim);
  const answer = await bed.write(late);
  const again = await bed.write(late);
  assert.equal(again.sequence, answer.sequence);
  for (const put of [...puts.slice(1), late]) {
    const primary = bed.primaryOf(put);
    const read = await bed.until(primary.engine.read({ ...bed.groupOf(put.key), key: put.key, entry: true }));
    assert.equal(fromUtf8(read!.body), fromUtf8(put.body));
  }
  assert.deepEqual(bed.fatal, []);
});

test('a node that is back within its lease takes over again and has everything', async () => {
  await using bed = await TestBed.open();
  const puts = Array.from({ length: 10 }, (_, i) => aPut(bed, `k${i}`, `v${i}`));
  await Promise.all(puts.map((put) => bed.write(put)));
  const victim = bed.primaryOf(puts[0]!).id;
  await bed.kill(victim);
  await bed.until(bed.start(victim));
  const more = await bed.write(aPut(bed, 'k0', 'after'));
  assert.ok(more.replaced !== undefined);
  for (const { id, store } of bed.nodes.values()) {
    assert.ok(store.log(puts[0]!).last >= more.sequence, `node ${id} has what was acknowledged`);
  }
  assert.deepEqual(bed.fatal, []);
});

test('a member that does not answer is dropped, the write goes on, and below minCopies it does not', async () => {
  await using bed = await TestBed.open({ parameters: { memberMs: 400 } });
  const put = aPut(bed, 'a', 'one');
  await bed.write(put);
  const { inSync } = bed.primaryOf(put).map.view.group(put);
  await bed.kill(inSync[1]!);
  await bed.write(aPut(bed, 'a', 'two'));
  const primary = bed.primaryOf(put);
  assert.deepEqual(primary.map.view.group(put).inSync, [inSync[0], inSync[2]]);
  await bed.kill(inSync[2]!);
  await bed.markDown(inSync[2]!);
  await bed.when(() => primary.map.view.group(put).inSync.length === 1);
  const third = bed.until(primary.engine.write(aPut(bed, 'a', 'three')));
  await assert.rejects(third, (error) => codeOf(error) === 'NO_QUORUM');
  const read = await bed.until(primary.engine.read({ ...bed.groupOf(put.key), key: put.key, entry: true }));
  assert.equal(fromUtf8(read!.body), 'two');
});

const BLOCK = new SeededRandom(3).bytes(700_000);

function aBlockId(seed: number): Uint8Array {
  return new SeededRandom(seed).bytes(20);
}

async function putBlock(
  bed: TestBed,
  id: Uint8Array,
  bytes: Uint8Array,
): Promise<ReturnType<typeof decodePutBlockAnswer>> {
  const group = bed.groupOf(id);
  const primary = bed.primaryOf(group);
  await bed.when(() => primary.engine.serving(group) > 0);
  const other = [...bed.nodes.values()].find((node) => node !== primary)!;
  const head = encodePutBlock({ ...group, id, key: aKey('big'), uploadId: new Uint8Array(16) }, 0);
  const { body, answer } = other.transport.link(primary.id).send(VERB.PUT_BLOCK, head, DEADLINE);
  const buffers = new ReadBuffers();
  const sending = async (): Promise<void> => {
    for (let at = 0; at < bytes.length; at += 65_536) {
      const piece = buffers.take(Math.min(65_536, bytes.length - at));
      piece.bytes.set(bytes.subarray(at, at + piece.bytes.length));
      if (!body.write(piece)) await body.ready();
    }
    body.end();
  };
  const [, answered] = await bed.until(Promise.all([sending(), answer]));
  return decodePutBlockAnswer(answered);
}

async function readBlock(
  bed: TestBed,
  link: Link,
  id: Uint8Array,
  range: { offset: number; length: number },
): Promise<Uint8Array> {
  const { body, answer } = link.fetch(
    VERB.READ_BLOCK,
    encodeReadBlock({ ...bed.groupOf(id), id, ...range }, 0),
    DEADLINE,
  );
  const reading = takeAll(body);
  const [bytes] = await bed.until(Promise.all([reading, answer]));
  return bytes;
}

async function takeAll(body: Incoming): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (;;) {
    const piece = body.take();
    if (piece !== undefined) {
      parts.push(piece.bytes.slice());
      piece.release();
    } else if (body.ended) return new Uint8Array(Buffer.concat(parts));
    else await body.ready();
  }
}

test('a block passes through its primary to all members, and each of them reads any range of it', async () => {
  await using bed = await TestBed.open();
  const id = aBlockId(1);
  const { size } = await putBlock(bed, id, BLOCK);
  assert.equal(size, BLOCK.length);
  await bed.when(() =>
    [...bed.nodes.values()].every(({ store }) => store.findBlock(bed.groupOf(id), id) !== undefined),
  );
  const nodes = [...bed.nodes.values()];
  for (const node of nodes) {
    const reader = nodes.find((other) => other !== node)!;
    const bytes = await readBlock(bed, reader.transport.link(node.id), id, { offset: 65_000, length: 300_001 });
    assert.ok(Buffer.compare(bytes, BLOCK.subarray(65_000, 365_001)) === 0, `node ${node.id} gives the bytes`);
  }
});

test('a broken chain costs no upload: members that missed the stream fetch the bytes', async () => {
  const failing = (_: unknown, link: Link): Link => ({
    peer: link.peer,
    call: (verb, message, options) => link.call(verb, message, options),
    post: (verb, message) => link.post(verb, message),
    fetch: (verb, message, options) => link.fetch(verb, message, options),
    send: (verb, message, options) => {
      const sent = link.send(verb, message, options);
      if (verb === VERB.STAGE) sent.body.cancel('broken on purpose');
      return sent;
    },
  });
  await using bed = await TestBed.open({ link: failing });
  const id = aBlockId(2);
  await putBlock(bed, id, BLOCK);
  for (const { store } of bed.nodes.values()) {
    assert.equal(store.log(bed.groupOf(id)).last, 1);
  }
  await bed.when(() =>
    [...bed.nodes.values()].every(({ store }) => store.findBlock(bed.groupOf(id), id) !== undefined),
  );
});

/** A store that does some things otherwise. */
function changed(store: Store, changes: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(changes, name) ?? Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

test('a record that is damaged at its primary is read from another member, and replaced', async () => {
  const key = aKey('a');
  let isDamaged = true;
  const installed: number[] = [];
  await using bed = await TestBed.open({
    store: (self, store) =>
      changed(store, {
        read: async (row) => {
          if (self === bed.primaryOf(bed.groupOf(key)).id && isDamaged) throw new WebdfsError('CORRUPT', 'on purpose');
          return await store.read(row);
        },
        install: async (entry) => {
          await store.install(entry);
          installed.push(entry.sequence);
          isDamaged = false;
        },
      }),
  });
  const put = aPut(bed, 'a', 'precious');
  const { sequence } = await bed.write(put);
  await bed.when(() => [...bed.nodes.values()].every(({ store }) => store.log(put).commit === sequence));
  const read = await bed.until(bed.primaryOf(put).engine.read({ ...bed.groupOf(key), key, entry: true }));
  assert.equal(fromUtf8(read!.body), 'precious');
  await bed.when(() => installed.length > 0);
  assert.deepEqual(installed, [sequence]);
});

test('beyond the window a write is answered BUSY, and nothing of it is kept', async () => {
  await using bed = await TestBed.open({ parameters: { windowEntries: 4 } });
  const put = aPut(bed, 'a', 'x');
  await bed.write(put);
  const primary = bed.primaryOf(put);
  const many = Array.from({ length: 10 }, (_, i) => primary.engine.write(aPut(bed, 'a', `${i}`)));
  const results = await bed.until(Promise.allSettled(many));
  const codes = results.map((result) => (result.status === 'rejected' ? codeOf(result.reason) : 'done'));
  assert.equal(codes.filter((code) => code === 'done').length, 4);
  assert.equal(codes.filter((code) => code === 'BUSY').length, 6);
  assert.equal(primary.engine.counts().flightBytes, 0);
});

test('a request older than the table reaches is refused: nobody can say whether it was done', async () => {
  await using bed = await TestBed.open();
  const put = aPut(bed, 'a', 'x', { ageMs: 61_000 });
  await assert.rejects(bed.until(bed.primaryOf(put).engine.write(put)), (error) => codeOf(error) === 'TOO_LATE');
});

test('a listing covers the groups that its node serves, in the order of keys', async () => {
  await using bed = await TestBed.open();
  const names = Array.from({ length: 30 }, (_, i) => `k${String(i).padStart(2, '0')}`);
  await Promise.all(names.map((name) => bed.write(aPut(bed, name, name))));
  const rows: string[] = [];
  const covered = new Set<number>();
  for (const { engine } of bed.nodes.values()) {
    const { policy } = bed.groupOf(aKey('x'));
    const page = await bed.until(engine.list({ policy, from: aKey(''), before: utf8('\0\0\0\u0002'), take: 1_000 }));
    for (const { key } of page.rows) rows.push(fromUtf8(key.subarray(4)));
    for (let group = 0; group < 4; group++) if (page.covered.has(group)) covered.add(group);
  }
  assert.deepEqual(rows.toSorted(), names);
  assert.equal(covered.size, 4);
});

test('a thousand groups are taken over in a handful of posts', async () => {
  await using bed = await TestBed.open({ groupBits: 10 });
  const nodes = (): readonly BedNode[] => [...bed.nodes.values()];
  const serving = (): number => nodes().reduce((sum, { engine }) => sum + engine.counts().phases.serve, 0);
  const posts = (): number => nodes().reduce((sum, { engine }) => sum + engine.counts().posts, 0);
  await bed.when(() => serving() === 1_024);
  await bed.kill(asNodeId(1));
  const before = posts();
  await bed.markDown(asNodeId(1));
  await bed.when(() => serving() === 1_024);
  assert.ok(posts() - before < 40, `${posts() - before} posts`);
  assert.deepEqual(bed.fatal, []);
});
