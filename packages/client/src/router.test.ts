import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asGroupId,
  asNodeId,
  asPolicyId,
  chunkSums,
  compareBytes,
  concat,
  EMPTY,
  type ErrorCode,
  ManualClock,
  type NodeId,
  SeededRandom,
  silentLog,
  type Timer,
  toHex,
  utf8,
  WebdfsError,
} from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import type { GroupView, LocalMap, MapView } from '@webdfs/cluster';
import {
  decodeListRequest,
  decodePutBlock,
  decodeReadBlock,
  decodeWriteRequest,
  encodeListAnswer,
  encodePutBlockAnswer,
  encodeReadAnswer,
  encodeWriteAnswer,
  GroupSet,
  type ListRow,
  type NodeListRequest,
  VERB,
  type WriteRequest,
} from '@webdfs/replica';
import { type Incoming, type Link, type Message, NO_ATTACHMENT, type Outgoing, type Piece } from '@webdfs/wire';
import type { RouterLimits } from './router-seams.ts';
import { GroupRouter } from './router.ts';

const POLICY = asPolicyId(1);
const [ONE, TWO, THREE] = [asNodeId(1), asNodeId(2), asNodeId(3)];
const GROUP_BITS = 3;

/** A clock that moves by a millisecond a turn of the event loop as long as anything waits for it. */
class IdleClock extends ManualClock {
  #waiting = 0;
  #moving = false;

  override after(ms: number, action: () => void): Timer {
    let live = true;
    const settle = (): void => {
      if (live) this.#waiting--;
      live = false;
    };
    const timer = super.after(ms, () => {
      settle();
      action();
    });
    this.#waiting++;
    if (!this.#moving) setImmediate(() => this.#move());
    this.#moving = true;
    return {
      cancel: () => {
        settle();
        timer.cancel();
      },
    };
  }

  #move(): void {
    this.#moving = this.#waiting > 0;
    if (!this.#moving) return;
    this.advance(1);
    setImmediate(() => this.#move());
  }
}

type Handler = (message: Message, verb: number) => Message | Promise<Message>;

function makeMap(script: Script): LocalMap {
  return {
    get view(): MapView {
      const { revision, primaryOf, inSync } = script;
      const group = (key: { group: number }): Partial<GroupView> => ({
        primary: primaryOf(key.group),
        inSync,
        health: 'whole',
      });
      return { revision, map: { groupBits: GROUP_BITS }, group } as unknown as MapView;
    },
    async readThrough(revision) {
      script.readThroughs.push(revision);
      while (script.revision < revision) script.move();
      return this.view;
    },
    onChange(listener) {
      const heard = (view: MapView): void => listener(view, 'all');
      script.listeners.add(heard);
      return () => script.listeners.delete(heard);
    },
    transact: () => Promise.reject(new Error('a router writes no map')),
  };
}

/** A cluster of scripted nodes: a map whose groups all have one primary, and what each node does when it is called. */
class Script {
  readonly clock = new IdleClock();
  readonly handlers = new Map<NodeId, Handler>();
  readonly bodies = new Map<NodeId, Partial<Link>>();
  readonly listeners = new Set<(view: MapView) => void>();
  readonly calls: { node: NodeId; message: Message }[] = [];
  readThroughs: number[] = [];
  revision = 1;
  primaryOf: (group: number) => NodeId | undefined = () => ONE;
  inSync: readonly NodeId[] = [ONE, TWO, THREE];

  router(limits: Partial<RouterLimits> = {}, self?: NodeId): GroupRouter {
    const { clock, map } = this;
    const seams = { map, link: (node: NodeId) => this.#link(node), clock, random: new SeededRandom(1), log: silentLog };
    return new GroupRouter(self === undefined ? seams : { ...seams, self }, limits);
  }

  /** The map at the next revision. */
  move(primaryOf: (group: number) => NodeId | undefined = this.primaryOf): void {
    this.revision++;
    this.primaryOf = primaryOf;
    for (const listener of this.listeners) listener(this.map.view);
  }

  /** Always the newest view, as of now. */
  readonly map: LocalMap = makeMap(this);

  #link(node: NodeId): Link {
    return {
      peer: node,
      call: async (verb, message) => {
        this.calls.push({ node, message });
        const handler = this.handlers.get(node);
        if (handler === undefined) throw new WebdfsError('PEER_LOST', `node ${node} is down`);
        return await handler(message, verb);
      },
      post: () => false,
      send: () => assert.fail('no send was scripted'),
      fetch: () => assert.fail('no fetch was scripted'),
      ...this.bodies.get(node),
    };
  }
}

function aWrite(): WriteRequest {
  return {
    policy: POLICY,
    group: asGroupId(2),
    requestId: new Uint8Array(16).fill(5),
    ageMs: 100,
    kind: 'put',
    key: utf8('0000key'),
    hashHigh: 1,
    hashLow: 2,
    conditions: {},
    requires: [],
    summary: new Uint8Array(32),
    owner: EMPTY,
    body: utf8('body'),
  };
}

const WRITTEN = { sequence: 3, ballot: 9, modifiedMs: 77, replaced: undefined };
const written: Handler = () => encodeWriteAnswer(WRITTEN);
const refusing =
  (code: ErrorCode, details: Record<string, number> = {}): Handler =>
  () => {
    throw new WebdfsError(code, 'scripted', { details });
  };

test('a write goes to the primary of its group and comes back with its version', async () => {
  const script = new Script();
  script.handlers.set(ONE, written);
  assert.deepEqual(await script.router().write(aWrite()), WRITTEN);
  assert.deepEqual(
    script.calls.map(({ node }) => node),
    [ONE],
  );
});

test('a refusal with a newer revision is followed by reading the map up to it, then by the new primary', async () => {
  const script = new Script();
  script.handlers.set(ONE, refusing('NOT_PRIMARY', { revision: 4 }));
  script.handlers.set(TWO, written);
  script.primaryOf = () => (script.revision < 4 ? ONE : TWO);
  assert.deepEqual(await script.router().write(aWrite()), WRITTEN);
  assert.deepEqual(script.readThroughs, [4]);
  assert.deepEqual(
    script.calls.map(({ node }) => node),
    [ONE, TWO],
  );
});

test('a retry has the same request id and a greater age', async () => {
  const script = new Script();
  let tries = 0;
  script.handlers.set(ONE, (message, verb) => {
    script.clock.advance(30);
    if (++tries < 4) throw new WebdfsError('PEER_LOST', 'scripted');
    return written(message, verb);
  });
  await script.router().write(aWrite());
  const arrived = script.calls.map(({ message }) => decodeWriteRequest(message).request);
  assert.deepEqual(new Set(arrived.map(({ requestId }) => toHex(requestId))).size, 1);
  const ages = arrived.map(({ ageMs }) => ageMs);
  assert.equal(ages[0], 100);
  assert.ok(
    ages.every((age, i) => i === 0 || age >= ages[i - 1]! + 30),
    ages.join(' '),
  );
});

test('what does not pass by itself is thrown as it came, after one try', async () => {
  for (const code of ['PRECONDITION_FAILED', 'CONFLICT', 'FENCED', 'DISK_FULL', 'INVALID', 'CORRUPT'] as const) {
    const script = new Script();
    script.handlers.set(ONE, refusing(code));
    await assert.rejects(script.router().write(aWrite()), { code });
    assert.equal(script.calls.length, 1, code);
  }
});

test('a group that stays out of reach ends in UNAVAILABLE after the time for retries, not before', async () => {
  for (const code of ['PEER_LOST', 'TIMEOUT', 'NO_QUORUM', 'NOT_SYNCED', 'BUSY', 'NOT_PRIMARY'] as const) {
    const script = new Script();
    script.handlers.set(ONE, refusing(code));
    const began = script.clock.now();
    await assert.rejects(script.router({ retryForMs: 300 }).write(aWrite()), { code: 'UNAVAILABLE' });
    const took = script.clock.now() - began;
    assert.ok(took >= 300 && took < 800, `${code}: ${took} ms`);
    assert.ok(script.calls.length >= 3 && script.calls.length < 100, `${code}: ${script.calls.length} tries`);
  }
});

test('a write that may have happened too long ago is not tried again: UNAVAILABLE', async () => {
  const script = new Script();
  script.handlers.set(ONE, refusing('TOO_LATE'));
  await assert.rejects(script.router().write(aWrite()), { code: 'UNAVAILABLE' });
  assert.equal(script.calls.length, 1);
});

test('without a primary the request waits for the map to name one', async () => {
  const script = new Script();
  script.primaryOf = () => undefined;
  script.handlers.set(TWO, written);
  const answer = script.router().write(aWrite());
  await new Promise(setImmediate);
  script.move(() => TWO);
  assert.deepEqual(await answer, WRITTEN);
});

test('a read of a key that is not there is undefined, not an error', async () => {
  const script = new Script();
  script.handlers.set(ONE, () => encodeReadAnswer(undefined));
  const read = { policy: POLICY, group: asGroupId(1), key: utf8('0000key'), entry: true };
  assert.equal(await script.router().read(read), undefined);
});

// ---- listing ----

interface Held {
  readonly key: Uint8Array;
  readonly group: number;
}

/** Answers as a node does: rows of the groups it serves, in order, up to `take`. */
function listing(rows: readonly Held[], serves: (group: number) => boolean, revision = 1): Handler {
  return (message, verb) => {
    assert.equal(verb, VERB.LIST);
    const { request }: { request: NodeListRequest } = decodeListRequest(message);
    const wanted = (group: number): boolean => serves(group) && (request.groups?.has(group) ?? true);
    const found = rows
      .filter(
        ({ key, group }) =>
          compareBytes(key, request.from) >= 0 && compareBytes(key, request.before) < 0 && wanted(group),
      )
      .toSorted((a, b) => compareBytes(a.key, b.key));
    const listed: ListRow[] = found
      .slice(0, request.take)
      .map(({ key }) => ({ key, prefix: false, sequence: 1, modifiedMs: 1, flags: 0, summary: new Uint8Array(32) }));
    const covered = new GroupSet(2 ** GROUP_BITS);
    for (let group = 0; group < 2 ** GROUP_BITS; group++) if (wanted(group)) covered.add(group);
    return encodeListAnswer({ rows: listed, covered, next: found[request.take]?.key, revision });
  };
}

const ALL = { policy: POLICY, from: EMPTY, before: Uint8Array.of(0xff), take: 1_000 };
const owner = (group: number): NodeId => asNodeId((group % 3) + 1);

test('pages of any size, put together, give the rows of all nodes once and in order', async (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 30; round++) {
    const script = new Script();
    script.primaryOf = owner;
    const rows = Array.from({ length: random.below(300) }, (_, i) => ({
      key: utf8(`k${String((i * 7919) % 1_009).padStart(4, '0')}`),
      group: random.below(8),
    }));
    for (const node of [ONE, TWO, THREE])
      script.handlers.set(
        node,
        listing(rows, (group) => owner(group) === node),
      );
    const router = script.router();
    const found: Uint8Array[] = [];
    let from: Uint8Array | undefined = EMPTY;
    while (from !== undefined) {
      const take = 1 + random.below(100);
      const page: Awaited<ReturnType<GroupRouter['list']>> = await router.list({ ...ALL, from, take });
      assert.ok(page.rows.length === take || page.next === undefined, 'a page is full unless it is the last');
      found.push(...page.rows.map(({ key }) => key));
      from = page.next;
    }
    const whole = rows.map(({ key }) => key).toSorted(compareBytes);
    assert.deepEqual(found.map(toHex), whole.map(toHex));
  }
});

test('a group that no answer covers is asked again of its new primary', async () => {
  const script = new Script();
  script.primaryOf = owner;
  const rows = [1, 2, 3, 4, 5].map((i) => ({ key: utf8(`k${i}`), group: i }));
  // node 2 has handed group 4 to node 3, and says so by not covering it
  script.handlers.set(
    ONE,
    listing(rows, (group) => owner(group) === ONE),
  );
  script.handlers.set(
    TWO,
    listing(rows, (group) => owner(group) === TWO && group !== 4, 2),
  );
  script.handlers.set(
    THREE,
    listing(rows, (group) => (owner(group) === THREE && script.revision < 2) || (group === 4 && script.revision >= 2)),
  );
  const before = script.primaryOf;
  script.primaryOf = (group) => (group === 4 && script.revision >= 2 ? THREE : before(group));
  const page = await script.router().list(ALL);
  assert.deepEqual(
    page.rows.map(({ key }) => toHex(key)),
    rows.map(({ key }) => toHex(key)),
  );
  assert.deepEqual(script.readThroughs, [2]);
});

test('a page that cannot be completed in time is UNAVAILABLE, never a partial one', async () => {
  const script = new Script();
  script.primaryOf = owner;
  const rows = [1, 2, 3].map((i) => ({ key: utf8(`k${i}`), group: i }));
  script.handlers.set(
    ONE,
    listing(rows, (group) => owner(group) === ONE),
  );
  script.handlers.set(
    TWO,
    listing(rows, (group) => owner(group) === TWO),
  );
  const began = script.clock.now();
  await assert.rejects(script.router().list(ALL), { code: 'UNAVAILABLE' });
  assert.ok(script.clock.now() - began >= 2_000);
});

// ---- blocks ----

const ID = new Uint8Array(20).fill(3);
const HEADER = { key: utf8('0000key'), uploadId: new Uint8Array(16) };

/** A node that takes a block; `outcome` decides once all came, or at once with `early`. */
function taking(options: { outcome: (bytes: Uint8Array) => Message; early?: WebdfsError; windowPieces?: number }): {
  link: Partial<Link>;
  taken: Uint8Array[];
  waits: () => number;
} {
  const taken: Uint8Array[] = [];
  let waits = 0;
  const link: Partial<Link> = {
    send(verb, message) {
      assert.equal(verb, VERB.PUT_BLOCK);
      assert.deepEqual(Buffer.from(decodePutBlock(message).request.id), Buffer.from(ID));
      const { promise, resolve, reject } = Promise.withResolvers<Message>();
      const body: Outgoing = {
        write(piece) {
          if (options.early !== undefined) reject(options.early);
          else taken.push(piece.bytes.slice());
          piece.release();
          return taken.length % (options.windowPieces ?? Infinity) !== 0 || taken.length === 0;
        },
        async ready() {
          waits++;
        },
        end() {
          try {
            resolve(options.outcome(concat(taken)));
          } catch (error) {
            reject(error);
          }
        },
        cancel: () => reject(new WebdfsError('CANCELLED', 'scripted')),
      };
      return { body, answer: promise };
    },
  };
  return { link, taken, waits: () => waits };
}

const stored = (bytes: Uint8Array): Message => encodePutBlockAnswer({ size: bytes.length, sums: chunkSums(bytes) });

async function upload(router: GroupRouter, parts: readonly Uint8Array[]): Promise<{ size: number; sums: Uint32Array }> {
  const block = router.putBlock(POLICY, ID, HEADER);
  for (const part of parts) await block.write(part);
  return await block.finish();
}

test('a block arrives in order and comes back with its size and checksums, whatever pieces it was written in', async (t) => {
  const random = randomOf(t);
  const script = new Script();
  const node = taking({ outcome: stored, windowPieces: 2 });
  script.bodies.set(ONE, node.link);
  const parts = Array.from({ length: 12 }, () => random.bytes(1 + random.below(400_000)));
  const whole = concat(parts);
  assert.deepEqual(await upload(script.router(), parts), { size: whole.length, sums: chunkSums(whole) });
  assert.ok(Buffer.compare(concat(node.taken), whole) === 0);
  assert.ok(node.waits() > 0, 'the writer waited for the window');
});

test('a small block refused by a node that is not the primary is sent again, whole, to the one that is', async () => {
  const script = new Script();
  script.primaryOf = () => (script.revision < 3 ? ONE : TWO);
  const early = new WebdfsError('NOT_PRIMARY', 'scripted', { details: { revision: 3 } });
  script.bodies.set(ONE, taking({ outcome: stored, early }).link);
  const right = taking({ outcome: stored });
  script.bodies.set(TWO, right.link);
  const parts = [utf8('one '), utf8('two '), utf8('three')];
  const { size } = await upload(script.router(), parts);
  assert.equal(size, 13);
  assert.equal(new TextDecoder().decode(concat(right.taken)), 'one two three');
});

test('a block whose first bytes are more than is kept arrives whole', async () => {
  const script = new Script();
  const node = taking({ outcome: stored, windowPieces: 3 });
  script.bodies.set(ONE, node.link);
  const whole = new Uint8Array(3_000_000).map((_, i) => i % 251);
  const block = script.router().putBlock(POLICY, ID, HEADER);
  // not waited for, as a careless caller might
  const first = block.write(whole.subarray(0, 2_000_000));
  const second = block.write(whole.subarray(2_000_000));
  await block.finish();
  await Promise.all([first, second]);
  assert.ok(Buffer.compare(concat(node.taken), whole) === 0);
});

test('a large block refused after its first bytes left is UNAVAILABLE, one aborted is CANCELLED', async () => {
  const script = new Script();
  const early = new WebdfsError('NOT_PRIMARY', 'scripted', { details: { revision: 3 } });
  script.bodies.set(ONE, taking({ outcome: stored, early }).link);
  await assert.rejects(upload(script.router(), [new Uint8Array(2_000_000), utf8('b')]), { code: 'UNAVAILABLE' });
  const block = script.router().putBlock(POLICY, ID, HEADER);
  block.abort();
  await assert.rejects(block.finish(), { code: 'CANCELLED' });
});

test('a block of no bytes is one', async () => {
  const script = new Script();
  script.bodies.set(ONE, taking({ outcome: stored }).link);
  assert.deepEqual(await upload(script.router(), []), { size: 0, sums: new Uint32Array(0) });
});

test('a block whose node is lost is UNAVAILABLE: its bytes are gone', async () => {
  const script = new Script();
  const lost = (): never => {
    throw new WebdfsError('PEER_LOST', 'scripted');
  };
  script.bodies.set(ONE, taking({ outcome: lost }).link);
  await assert.rejects(upload(script.router(), [utf8('bytes')]), { code: 'UNAVAILABLE' });
});

test('a full disk is told as it is, also where it comes before the end', async () => {
  for (const early of [undefined, new WebdfsError('DISK_FULL', 'scripted')]) {
    const script = new Script();
    const full = (): never => {
      throw new WebdfsError('DISK_FULL', 'scripted');
    };
    script.bodies.set(ONE, taking({ outcome: full, ...(early && { early }) }).link);
    await assert.rejects(upload(script.router(), [utf8('a'), utf8('b'), utf8('c')]), { code: 'DISK_FULL' });
  }
});

test('a block that was stored with other bytes than were sent is not acknowledged', async () => {
  const script = new Script();
  script.bodies.set(ONE, taking({ outcome: (bytes) => stored(bytes.fill(0)) }).link);
  await assert.rejects(upload(script.router(), [utf8('bytes')]), { code: 'UNAVAILABLE' });
});

/** A node that gives a block's bytes, up to `until`, then fails. */
function giving(bytes: Uint8Array, options: { until?: number; code?: ErrorCode } = {}): Partial<Link> {
  return {
    fetch(verb, message) {
      assert.equal(verb, VERB.READ_BLOCK);
      const { offset, length } = decodeReadBlock(message).request;
      let at = offset;
      const end = Math.min(offset + length, options.until ?? bytes.length);
      const failure = end < offset + length ? new WebdfsError(options.code ?? 'PEER_LOST', 'scripted') : undefined;
      const body: Incoming = {
        take() {
          if (at >= end) return undefined;
          const piece = ownPiece(bytes.subarray(at, Math.min(at + 1_000, end)));
          at += piece.bytes.length;
          return piece;
        },
        async ready() {
          if (at >= end && failure !== undefined) throw failure;
        },
        get ended() {
          return at >= end && failure === undefined;
        },
        cancel: () => undefined,
      };
      const answer =
        failure === undefined ? Promise.resolve({ head: EMPTY, attached: NO_ATTACHMENT }) : Promise.reject(failure);
      return { body, answer };
    },
  };
}

function ownPiece(bytes: Uint8Array): Piece {
  return { bytes, hold: () => undefined, release: () => undefined };
}

async function readAll(router: GroupRouter, range: { offset: number; length: number }): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of router.readBlock(POLICY, ID, range)) {
    pieces.push(piece.bytes.slice());
    piece.release();
  }
  return concat(pieces);
}

test('a block read goes on at the right byte on the next member, whatever ended the first', async (t) => {
  const random = randomOf(t);
  const bytes = random.bytes(20_000);
  for (const code of ['CORRUPT', 'NOT_FOUND', 'PEER_LOST', 'TIMEOUT'] as const) {
    const script = new Script();
    script.bodies.set(ONE, giving(bytes, { until: 5_500, code }));
    script.bodies.set(TWO, giving(bytes, { until: 11_000, code }));
    script.bodies.set(THREE, giving(bytes));
    const range = { offset: 1_234, length: 15_000 };
    const read = await readAll(script.router(), range);
    assert.ok(Buffer.compare(read, bytes.subarray(1_234, 16_234)) === 0, code);
  }
});

test('a member reads its own copy first', async () => {
  const script = new Script();
  const bytes = new Uint8Array(100).fill(8);
  script.bodies.set(THREE, giving(bytes));
  assert.deepEqual(await readAll(script.router({}, THREE), { offset: 0, length: 100 }), bytes);
});

test('a block that no member has is NOT_FOUND, one that is damaged everywhere it lies is CORRUPT', async () => {
  const script = new Script();
  const none = new Uint8Array(0);
  for (const node of [ONE, TWO, THREE]) script.bodies.set(node, giving(none, { until: 0, code: 'NOT_FOUND' }));
  await assert.rejects(readAll(script.router(), { offset: 0, length: 10 }), { code: 'NOT_FOUND' });
  script.bodies.set(TWO, giving(none, { until: 0, code: 'CORRUPT' }));
  await assert.rejects(readAll(script.router(), { offset: 0, length: 10 }), { code: 'CORRUPT' });
  script.bodies.set(THREE, giving(none, { until: 0, code: 'PEER_LOST' }));
  await assert.rejects(readAll(script.router({ retryForMs: 200 }), { offset: 0, length: 10 }), { code: 'UNAVAILABLE' });
});
