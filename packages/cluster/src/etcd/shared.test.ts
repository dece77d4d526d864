import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { ManualClock, SeededRandom, silentLog, systemClock, SystemRandom } from '@webdfs/base';
import { type LocalServer, serveLocally } from '@webdfs/base/testing';
import { createCluster } from '../create-cluster.ts';
import { followMap } from '../local-map.ts';
import type { Change, MapStore, Write } from '../map-store.ts';
import { openEtcdMapStore } from './map-store.ts';
import { etcdMissing, RunningEtcd } from './testing.ts';

/** An etcd that others use too: its revisions go on without us, and its history is compacted when others please. */

const skip = etcdMissing();
let etcd: RunningEtcd | undefined;

before(async () => {
  if (skip === false) etcd = await RunningEtcd.start();
});
after(async () => {
  await etcd?.[Symbol.asyncDispose]();
});

function open(name: string): MapStore {
  const { address } = etcd!;
  return openEtcdMapStore({ address, name, clock: systemClock, random: new SystemRandom(), log: silentLog });
}

const put = (key: string, value: string): Write => ({ type: 'put', key, value });

async function others(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await etcd!.ask(0, 'kv/put', { key: 'Zm9v', value: 'YmFy' });
}

async function first(changes: AsyncIterable<Change>): Promise<Change> {
  for await (const change of changes) return change;
  throw new Error('the watch ended');
}

test('clusters in one etcd do not see each other', { skip }, async () => {
  await using one = open('one');
  await using other = open('one-more');
  await one.transact({ compare: [], write: [put('map', 'one')] });
  await other.transact({ compare: [], write: [put('map', 'other')] });
  const [entry] = (await one.read()).entries;
  assert.equal(entry?.value, 'one');
  const { done } = await one.transact({
    compare: [{ type: 'range', prefix: '', notAfter: entry!.modRevision }],
    write: [],
  });
  assert.ok(done, 'what another cluster writes is no newer key of this one');
});

test('revisions that others make do not hold up a map', { skip }, async () => {
  await using store = open('busy');
  const nodes = [1, 2, 3].map((id) => ({ id: id as never, address: '' }));
  await createCluster(store, { name: 'busy', nodes, groupBits: 4, random: new SeededRandom(1) });
  await others(20);
  await using map = await followMap(store, systemClock, silentLog, { readThroughMs: 1_000 });
  await others(20);
  await map.readFresh();
  const { revision } = await store.transact({ compare: [], write: [put('down/2', '{"reason":"lost","session":0}')] });
  await others(20);
  assert.deepEqual((await map.readThrough(revision)).marked(), [2]);
  const failed = await store.transact({ compare: [{ type: 'modified', key: 'map', is: 1 }], write: [put('x', '')] });
  assert.ok(!failed.done);
  await map.readThrough(failed.revision);
  // a deletion leaves no key behind, and is waited for all the same
  await store.transact({ compare: [], write: [{ type: 'delete', key: 'down/2' }] });
  assert.deepEqual((await map.readFresh()).marked(), []);
});

test('a watch from before a compaction says so; a map goes on by reading again', { skip }, async () => {
  await using store = open('compacted');
  const nodes = [1, 2, 3].map((id) => ({ id: id as never, address: '' }));
  const { revision } = await createCluster(store, { name: 'c', nodes, groupBits: 4, random: new SeededRandom(1) });
  const clock = new ManualClock();
  await using map = await followMap(store, clock, silentLog);
  await store.transact({ compare: [], write: [put('down/2', '{"reason":"lost","session":0}')] });
  await map.readFresh();
  await others(5);
  await etcd!.ask(0, 'kv/compaction', { revision: String((await store.read()).revision) });
  await assert.rejects(first(store.watch(revision, new AbortController().signal)), { code: 'COMPACTED' });
  await store.transact({ compare: [], write: [put('down/3', '{"reason":"lost","session":0}')] });
  assert.deepEqual((await map.readFresh()).marked(), [2, 3]);
});

/** A member whose watches are answered and then never tell anything; all else goes to the real one. */
async function deafMember(): Promise<LocalServer & { watched: () => number }> {
  let watched = 0;
  const server = await serveLocally((request, response) => {
    if (request.url === '/v3/watch') {
      watched++;
      response.write('{"result":{"header":{"revision":"1"},"created":true}}\n');
      return;
    }
    void (async () => {
      const body = await text(request);
      const answer = await fetch(`http://${etcd!.hosts[0]}${request.url}`, { method: 'POST', body });
      response.end(await answer.text());
    })();
  });
  return { ...server, watched: () => watched };
}

test('a watch that has gone deaf is left for another member, and misses nothing', { skip }, async () => {
  await using deaf = await deafMember();
  await using store = openEtcdMapStore({
    address: { hosts: [deaf.host, etcd!.hosts[0]!], tls: false },
    name: 'deaf',
    clock: systemClock,
    random: new SystemRandom(),
    log: silentLog,
    lagMs: 200,
  });
  const { revision } = await store.transact({ compare: [], write: [put('a', '1')] });
  const told = first(store.watch(revision, new AbortController().signal));
  while (deaf.watched() === 0) await new Promise((resolve) => setImmediate(resolve));
  const written = await store.transact({ compare: [], write: [put('a', '2')] });
  assert.deepEqual([(await told).revision, deaf.watched()], [written.revision, 1]);
});

test('a transaction of which each kind may be part is atomic: all of its keys, or none', { skip }, async () => {
  await using store = open('atomic');
  const { revision } = await store.transact({ compare: [], write: [put('a', '1'), put('b', '1'), put('c', '1')] });
  const lease = await store.lease(60_000);
  const write: Write[] = [put('a', '2'), { type: 'delete', key: 'b' }, { ...put('d', '2'), lease: lease.id } as Write];
  assert.ok(!(await store.transact({ compare: [{ type: 'created', key: 'c', is: 0 }], write })).done);
  const answer = await store.transact({ compare: [{ type: 'created', key: 'c', is: revision }], write });
  assert.ok(answer.done);
  const change = await first(store.watch(revision, new AbortController().signal));
  assert.equal(change.revision, answer.revision);
  assert.deepEqual(change.changes.map(({ key, entry }) => [key, entry?.value]).toSorted(), [
    ['a', '2'],
    ['b', undefined],
    ['d', '2'],
  ]);
});
