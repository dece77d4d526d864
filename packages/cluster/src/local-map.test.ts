import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, type GroupKey, ManualClock, SeededRandom, silentLog } from '@webdfs/base';
import { createCluster, FIRST_POLICY } from './create-cluster.ts';
import { type FollowedMap, followMap } from './local-map.ts';
import type { Change, MapContents, MapStore, Write } from './map-store.ts';
import { MemoryMapStore } from './memory-map-store.ts';

async function turns(count = 8): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

const mark = (node: number): Write => ({ type: 'put', key: `down/${node}`, value: '{"reason":"","session":0}' });

async function aStore(changes = 4_096): Promise<{ clock: ManualClock; store: MemoryMapStore }> {
  const clock = new ManualClock();
  const store = new MemoryMapStore(clock, { history: { changes } });
  const nodes = [1, 2, 3].map((id) => ({ id: asNodeId(id), address: `host:${id}` }));
  await createCluster(store, { name: 'test', nodes, random: new SeededRandom(1), groupBits: 7 });
  return { clock, store };
}

test('a map follows its store, and tells which groups may differ', async () => {
  const { clock, store } = await aStore();
  await using map = await followMap(store, clock, silentLog);
  const told: (readonly GroupKey[] | 'all')[] = [];
  const stop = map.onChange((_view, groups) => told.push(groups));
  await store.transact({ compare: [], write: [mark(2)] });
  const value = '{"members":[1],"eligible":[],"from":[]}';
  const { revision } = await store.transact({ compare: [], write: [{ type: 'put', key: 'group/1/5', value }] });
  await map.readThrough(revision);
  assert.deepEqual(map.view.marked(), [2]);
  assert.deepEqual(told, ['all', [{ policy: FIRST_POLICY, group: 5 }]]);
  stop();
  await store.transact({ compare: [], write: [mark(3)] });
  await turns();
  assert.equal(told.length, 2);
});

test('a map that was away for too long reads again, and what it waited for is there', async () => {
  const { clock, store } = await aStore(2);
  let isStuck = true;
  const slow: MapStore = {
    read: () => store.read(),
    transact: (transaction) => store.transact(transaction),
    async *watch(after, signal): AsyncIterable<Change> {
      while (isStuck) await turns(1);
      yield* store.watch(after, signal);
    },
    fresh: (seen) => store.fresh(seen),
    lease: (ttlMs) => store.lease(ttlMs),
    [Symbol.asyncDispose]: async () => undefined,
  };
  await using map = await followMap(slow, clock, silentLog);
  const told: (readonly GroupKey[] | 'all')[] = [];
  map.onChange((_view, groups) => told.push(groups));
  for (let i = 0; i < 5; i++) await store.transact({ compare: [], write: [mark(1 + (i % 3))] });
  const waiting = map.readFresh();
  isStuck = false;
  assert.deepEqual((await waiting).marked(), [1, 2, 3]);
  assert.deepEqual(told, ['all']);
});

test('a revision that does not come in time is told, not waited for', async () => {
  const { clock, store } = await aStore();
  await using map = await followMap(store, clock, silentLog, { readThroughMs: 1_000 });
  const waiting = map.readThrough(map.view.revision + 1);
  clock.advance(1_000);
  await assert.rejects(waiting, { code: 'UNAVAILABLE' });
});

test('who waits when a map is closed is told', async () => {
  const { clock, store } = await aStore();
  const map = await followMap(store, clock, silentLog);
  const waiting = map.readThrough(map.view.revision + 1);
  waiting.catch(() => undefined);
  await map[Symbol.asyncDispose]();
  await assert.rejects(waiting, { code: 'UNAVAILABLE' });
});

test('a store without a cluster cannot be followed', async () => {
  const clock = new ManualClock();
  await assert.rejects(followMap(new MemoryMapStore(clock), clock, silentLog), { code: 'NOT_FOUND' });
});

/** A store that can be exchanged for an older copy of itself. */
class ExchangedStore implements MapStore {
  now: MapStore;

  constructor(store: MapStore) {
    this.now = store;
  }

  read(): Promise<MapContents> {
    return this.now.read();
  }

  transact(transaction: Parameters<MapStore['transact']>[0]): ReturnType<MapStore['transact']> {
    return this.now.transact(transaction);
  }

  async *watch(after: number, signal: AbortSignal): AsyncIterable<Change> {
    const { now } = this;
    const ended = new AbortController();
    signal.addEventListener('abort', () => ended.abort());
    for await (const change of now.watch(after, ended.signal)) {
      yield change;
      if (now !== this.now) return;
    }
  }

  fresh(seen: number): Promise<number> {
    return this.now.fresh(seen);
  }

  lease(ttlMs: number): ReturnType<MapStore['lease']> {
    return this.now.lease(ttlMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

test('a store that went back is not believed: the map stays and says so', async () => {
  const { clock, store } = await aStore();
  const older = await aStore();
  const exchanged = new ExchangedStore(store);
  await using map: FollowedMap = await followMap(exchanged, clock, silentLog);
  for (const node of [1, 2]) await store.transact({ compare: [], write: [mark(node)] });
  await turns();
  exchanged.now = older.store;
  await store.transact({ compare: [], write: [mark(3)] });
  assert.equal((await map.failed).code, 'OLD_STORE');
  assert.deepEqual(map.view.marked(), [1, 2, 3]);
});

/** A store whose watch never tells of deletions, as etcd's may when compaction races with it. */
class ForgetfulStore extends ExchangedStore {
  override async *watch(after: number, signal: AbortSignal): AsyncIterable<Change> {
    for await (const { revision, changes } of this.now.watch(after, signal)) {
      yield { revision, changes: changes.filter(({ entry }) => entry !== undefined) };
    }
  }
}

test('what a watch missed is found when all keys are compared', async () => {
  const { clock, store } = await aStore();
  await using map = await followMap(new ForgetfulStore(store), clock, silentLog, { auditMs: 60_000 });
  await store.transact({ compare: [], write: [mark(1), mark(2)] });
  await store.transact({ compare: [], write: [{ type: 'delete', key: 'down/2' }] });
  await map.readFresh();
  assert.deepEqual(map.view.marked(), [1, 2]);
  clock.advance(60_000);
  await turns();
  assert.deepEqual(map.view.marked(), [1]);
  // and it goes on from there
  await store.transact({ compare: [], write: [mark(3)] });
  await map.readFresh();
  assert.deepEqual(map.view.marked(), [1, 3]);
});
