import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf } from '@webdfs/base';
import type { Change, Compare, MapStore, Transaction, Write } from './map-store.ts';

/** A map store under test, and how its time passes. */
export interface MapStoreUnderTest extends AsyncDisposable {
  readonly store: MapStore;
  /** A second way to the same store. */
  readonly other: MapStore;
  /** Lets so much time pass for the store's leases. */
  readonly pass: (ms: number) => Promise<void>;
  /** How many changes it keeps for watchers that begin late, if it forgets any. */
  readonly keptChanges?: number;
}

const put = (key: string, value: string): Write => ({ type: 'put', key, value });
const writes = (...write: Write[]): Transaction => ({ compare: [], write });
const modified = (key: string, is: number): Compare => ({ type: 'modified', key, is });

async function take(changes: AsyncIterable<Change>, count: number): Promise<Change[]> {
  const taken: Change[] = [];
  for await (const change of changes) {
    taken.push(change);
    if (taken.length === count) break;
  }
  return taken;
}

async function code(work: Promise<unknown>): Promise<string | undefined> {
  return await work.then(
    () => undefined,
    (error: unknown) => codeOf(error) ?? String(error),
  );
}

async function valueOf(store: MapStore, key: string): Promise<string | undefined> {
  return (await store.read()).entries.find((entry) => entry.key === key)?.value;
}

/** The promises of every house of the map store, as tests. */
export function testMapStore(house: string, open: () => Promise<MapStoreUnderTest>): void {
  const claim = (name: string, body: (under: MapStoreUnderTest) => Promise<void>): void => {
    test(`${house}: ${name}`, async () => {
      await using under = await open();
      await body(under);
    });
  };

  claim('of two writers that saw the same revision, one wins', async ({ store, other }) => {
    const { revision } = await store.transact(writes(put('map', 'first')));
    const race = [store, other].map((each, i) =>
      each.transact({ compare: [modified('map', revision)], write: [put('map', `writer ${i}`)] }),
    );
    const outcomes = await Promise.all(race);
    assert.equal(outcomes.filter(({ done }) => done).length, 1);
    assert.equal(await valueOf(store, 'map'), `writer ${outcomes.findIndex(({ done }) => done)}`);
  });

  claim('a transaction whose condition does not hold writes nothing', async ({ store }) => {
    const { revision } = await store.transact(writes(put('down/1', 'a')));
    const answer = await store.transact({
      compare: [modified('down/1', revision), modified('down/2', revision)],
      write: [put('down/1', 'b'), put('down/3', 'c')],
    });
    assert.deepEqual(answer, { done: false, revision });
    assert.deepEqual(
      (await store.read()).entries.map(({ key, value }) => [key, value]),
      [['down/1', 'a']],
    );
  });

  claim('a key knows when it was made and when it was last written', async ({ store }) => {
    const made = await store.transact(writes(put('disk/7', 'a')));
    const written = await store.transact(writes(put('disk/7', 'b')));
    const { entries, revision } = await store.read();
    assert.deepEqual(entries, [
      { key: 'disk/7', value: 'b', createRevision: made.revision, modRevision: written.revision },
    ]);
    assert.equal(revision, written.revision);
    assert.ok(written.revision > made.revision);
  });

  claim('a key that was deleted and made again is a new one', async ({ store }) => {
    const first = await store.transact(writes(put('controller', 'a')));
    await store.transact(writes({ type: 'delete', key: 'controller' }));
    const second = await store.transact({
      compare: [{ type: 'created', key: 'controller', is: 0 }],
      write: [put('controller', 'b')],
    });
    assert.ok(second.done);
    const old = await store.transact({
      compare: [{ type: 'created', key: 'controller', is: first.revision }],
      write: [put('map', 'by the deposed')],
    });
    assert.ok(!old.done);
  });

  claim(
    'a range holds only if nothing in it is newer, and an empty one is older than everything',
    async ({ store }) => {
      const range = (prefix: string, notAfter: number): Transaction => ({
        compare: [{ type: 'range', prefix, notAfter }],
        write: [],
      });
      assert.ok((await store.transact(range('down/', 0))).done);
      const first = await store.transact(writes(put('down/1', 'a')));
      const second = await store.transact(writes(put('down/2', 'b'), put('downtown', 'c')));
      assert.ok(!(await store.transact(range('down/', 0))).done);
      assert.ok(!(await store.transact(range('down/', first.revision))).done);
      assert.ok((await store.transact(range('down/', second.revision))).done);
      await store.transact(writes({ type: 'delete', key: 'down/2' }));
      assert.ok((await store.transact(range('down/', first.revision))).done);
    },
  );

  claim('revisions count transactions that changed something', async ({ store }) => {
    const first = await store.transact(writes(put('a', '1'), put('b', '2')));
    const none = await store.transact(writes({ type: 'delete', key: 'never' }));
    const compared = await store.transact({ compare: [modified('a', first.revision)], write: [] });
    const next = await store.transact(writes(put('a', '1')));
    // a house may count a transaction that only deletes what is not there
    assert.ok(none.revision >= first.revision);
    assert.equal(compared.revision, none.revision);
    assert.equal(next.revision, none.revision + 1);
  });

  claim('a watch gives whole revisions, in order, from where it was asked to', async ({ store, other }) => {
    const before = await store.transact(writes(put('a', '0')));
    const stop = new AbortController();
    const taken = take(other.watch(before.revision, stop.signal), 3);
    await store.transact(writes(put('a', '1'), put('b', '1')));
    await store.transact(writes(put('c', '2')));
    await store.transact(writes({ type: 'delete', key: 'a' }));
    assert.deepEqual(
      (await taken).map(({ revision, changes }) => [
        revision - before.revision,
        changes.map(({ key, entry }) => [key, entry?.value]),
      ]),
      [
        [
          1,
          [
            ['a', '1'],
            ['b', '1'],
          ],
        ],
        [2, [['c', '2']]],
        [3, [['a', undefined]]],
      ],
    );
    stop.abort();
  });

  claim('a watch that begins late gives what it missed', async ({ store }) => {
    const before = await store.read();
    for (const value of ['1', '2', '3']) await store.transact(writes(put('a', value)));
    const stop = new AbortController();
    const taken = await take(store.watch(before.revision, stop.signal), 3);
    assert.deepEqual(
      taken.map(({ changes }) => changes[0]?.entry?.value),
      ['1', '2', '3'],
    );
  });

  claim('a watch ends when its signal says so', async ({ store }) => {
    const stop = new AbortController();
    const { revision } = await store.read();
    const all = take(store.watch(revision, stop.signal), 1);
    stop.abort();
    assert.deepEqual(await all, []);
  });

  claim('a watch from a revision that is yet to come says that the store is old', async ({ store }) => {
    const { revision } = await store.read();
    const never = new AbortController();
    assert.equal(await code(take(store.watch(revision + 5, never.signal), 1)), 'OLD_STORE');
  });

  claim('a watch from too far back says so, and reading again catches up', async ({ store, keptChanges }) => {
    if (keptChanges === undefined) return;
    const { revision } = await store.read();
    for (let i = 0; i <= keptChanges; i++) await store.transact(writes(put('a', String(i))));
    const never = new AbortController();
    assert.equal(await code(take(store.watch(revision, never.signal), 1)), 'COMPACTED');
    const again = await store.read();
    assert.equal(again.entries[0]?.value, String(keptChanges));
    assert.equal((await take(store.watch(again.revision - 1, never.signal), 1))[0]?.revision, again.revision);
  });

  claim('fresh names a revision that includes every answered write', async ({ store, other }) => {
    const { revision } = await store.transact(writes(put('a', '1')));
    assert.ok((await other.fresh(0)) >= revision);
  });

  claim('keys bound to a lease go when it runs out, in one revision', async ({ store, pass }) => {
    const lease = await store.lease(1_000);
    const { revision } = await store.transact(
      writes(
        { ...put('live/1', 'a'), lease: lease.id } as Write,
        { ...put('controller', 'b'), lease: lease.id } as Write,
        put('node/1', 'c'),
      ),
    );
    const stop = new AbortController();
    const ended = take(store.watch(revision, stop.signal), 1);
    await pass(lease.ttlMs + 100);
    assert.deepEqual((await ended)[0]?.changes.map(({ key, entry }) => [key, entry]).sort(), [
      ['controller', undefined],
      ['live/1', undefined],
    ]);
    assert.deepEqual(
      (await store.read()).entries.map(({ key }) => key),
      ['node/1'],
    );
    assert.equal(await code(lease.renew()), 'NOT_FOUND');
  });

  claim('a renewed lease goes on', async ({ store, pass }) => {
    const lease = await store.lease(1_000);
    await store.transact(writes({ ...put('live/1', 'a'), lease: lease.id } as Write));
    for (let i = 0; i < 4; i++) {
      await pass(0.4 * lease.ttlMs);
      await lease.renew();
    }
    assert.equal(await valueOf(store, 'live/1'), 'a');
    await lease.end();
  });

  claim('a lease that is ended takes its keys at once', async ({ store, other }) => {
    const lease = await store.lease(60_000);
    await store.transact(writes({ ...put('live/1', 'a'), lease: lease.id } as Write));
    await lease.end();
    assert.equal(await valueOf(other, 'live/1'), undefined);
  });

  claim('nothing can be bound to a lease that is gone', async ({ store }) => {
    const lease = await store.lease(60_000);
    await lease.end();
    assert.equal(await code(store.transact(writes({ ...put('live/1', 'a'), lease: lease.id } as Write))), 'NOT_FOUND');
    assert.equal(await valueOf(store, 'live/1'), undefined);
  });

  claim('a key written without its lease stays when the lease ends', async ({ store }) => {
    const lease = await store.lease(60_000);
    await store.transact(writes({ ...put('live/1', 'a'), lease: lease.id } as Write));
    await store.transact(writes(put('live/1', 'b')));
    await lease.end();
    assert.equal(await valueOf(store, 'live/1'), 'b');
  });

  claim('what no store could take is refused', async ({ store }) => {
    const many = Array.from({ length: 129 }, (_, i) => put(`a/${i}`, ''));
    assert.equal(await code(store.transact(writes(...many))), 'INVALID');
    assert.equal(await code(store.transact(writes(put('a', '1'), put('a', '2')))), 'INVALID');
    assert.equal(await code(store.transact(writes(put('', '1')))), 'INVALID');
    assert.equal(await code(store.transact(writes(put('a', 'x'.repeat(2 ** 20 + 1))))), 'TOO_LARGE');
    assert.equal(await code(store.lease(-1)), 'INVALID');
    assert.deepEqual((await store.read()).entries, []);
  });

  claim('a large map is read whole', async ({ store, other }) => {
    const value = 'v'.repeat(3_000);
    for (let i = 0; i < 8; i++) {
      await store.transact(writes(...Array.from({ length: 60 }, (_, j) => put(`group/1/${i * 60 + j}`, value))));
    }
    const { entries } = await other.read();
    assert.equal(entries.length, 480);
    assert.ok(entries.every((entry) => entry.value === value));
  });

  claim('after it is closed its calls say that it is away', async ({ store }) => {
    await store[Symbol.asyncDispose]();
    assert.equal(await code(store.read()), 'UNAVAILABLE');
  });
}
