import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, codeOf, ManualClock, NodeDisk, SeededRandom, silentLog, systemClock } from '@webdfs/base';
import { SimulatedDisk } from '@webdfs/base/testing';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testMapStore } from './conformance.ts';
import { EmbeddedMapOwner, processHolder } from './embedded-map-owner.ts';
import { connectMapStore } from './map-client.ts';
import { serveMapStore } from './map-server.ts';
import type { ProcessTable } from './process-table.ts';

/** One process; those that are listed are gone. */
function aProcess(pid: number, gone: readonly number[] = []): ProcessTable {
  return {
    own: async () => ({ pid, start: '1', boot: 'b' }),
    gone: async (mark) => gone.includes(mark.pid),
  };
}

interface OwnerOptions {
  disk?: SimulatedDisk | NodeDisk;
  folder?: string;
  clock?: ManualClock;
  processes?: ProcessTable;
  logBytes?: number;
  history?: { changes: number };
}

function anOwner(options: OwnerOptions = {}): Promise<EmbeddedMapOwner> {
  return EmbeddedMapOwner.open({
    disk: options.disk ?? new SimulatedDisk({ seed: 1 }),
    folder: options.folder ?? '/data/map',
    clock: options.clock ?? new ManualClock(),
    random: new SeededRandom(7),
    log: silentLog,
    processes: options.processes ?? aProcess(1),
    ...(options.logBytes === undefined ? {} : { logBytes: options.logBytes }),
    ...(options.history === undefined ? {} : { history: options.history }),
  });
}

async function aFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'webdfs-map-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

testMapStore('embedded', async () => {
  const clock = new ManualClock();
  const owner = await anOwner({ clock, history: { changes: 8 } });
  return {
    store: owner.connect(),
    other: owner.connect(),
    pass: async (ms) => clock.advance(ms),
    keptChanges: 8,
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  };
});

testMapStore('embedded, over a socket', async () => {
  const clock = new ManualClock();
  const folder = await aFolder();
  const owner = await anOwner({
    clock,
    disk: new NodeDisk(),
    folder: join(folder.path, 'map'),
    history: { changes: 8 },
  });
  const socket = join(folder.path, 'map.sock');
  const server = await serveMapStore(owner, socket);
  const store = connectMapStore(socket, systemClock, silentLog);
  const other = connectMapStore(socket, systemClock, silentLog);
  return {
    store,
    other,
    pass: async (ms) => clock.advance(ms),
    keptChanges: 8,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await owner[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
});

test('what was answered is there after the owner is opened again', async () => {
  const disk = new SimulatedDisk({ seed: 1 });
  let revision = 0;
  {
    await using owner = await anOwner({ disk });
    const store = owner.connect();
    await store.transact({ compare: [], write: [{ type: 'put', key: 'map', value: 'a' }] });
    ({ revision } = await store.transact({ compare: [], write: [{ type: 'put', key: 'node/1', value: 'b' }] }));
  }
  await using owner = await anOwner({ disk });
  const contents = await owner.connect().read();
  assert.equal(contents.revision, revision);
  assert.deepEqual(
    contents.entries.map(({ key, value }) => [key, value]),
    [
      ['map', 'a'],
      ['node/1', 'b'],
    ],
  );
});

test('a new owner begins without sessions, at a later revision', async () => {
  const disk = new SimulatedDisk({ seed: 1 });
  let revision = 0;
  {
    await using owner = await anOwner({ disk });
    const store = owner.connect();
    const lease = await store.lease(60_000);
    ({ revision } = await store.transact({
      compare: [],
      write: [{ type: 'put', key: 'live/1', value: 'a', lease: lease.id }],
    }));
  }
  await using owner = await anOwner({ disk });
  const contents = await owner.connect().read();
  assert.deepEqual(contents.entries, []);
  assert.equal(contents.revision, revision + 1);
});

test('a log that is full is replaced, and only the last two pairs of files stay', async () => {
  const disk = new SimulatedDisk({ seed: 1 });
  {
    await using owner = await anOwner({ disk, logBytes: 400 });
    const store = owner.connect();
    for (let i = 0; i < 60; i++) {
      await store.transact({ compare: [], write: [{ type: 'put', key: `node/${i + 1}`, value: 'x'.repeat(40) }] });
    }
    const names = (await disk.list('/data/map')).filter((name) => !name.startsWith('lock'));
    assert.equal(names.length, 4);
  }
  await using owner = await anOwner({ disk });
  const contents = await owner.connect().read();
  assert.equal(contents.entries.length, 60);
  assert.equal(contents.revision, 60);
});

test('one process owns a folder, and another only when that one is gone', async () => {
  const disk = new SimulatedDisk({ seed: 1 });
  const first = await anOwner({ disk, processes: aProcess(10) });
  await assert.rejects(anOwner({ disk, processes: aProcess(11) }), { code: 'LOCKED' });
  await assert.rejects(anOwner({ disk, processes: aProcess(10) }), { code: 'LOCKED' });
  await using second = await anOwner({ disk, processes: aProcess(12, [10]) });
  assert.equal((await second.connect().read()).revision, 0);
  await first[Symbol.asyncDispose]();
  await assert.rejects(anOwner({ disk, processes: aProcess(13) }), { code: 'LOCKED' });
});

test('a dead child’s leases end at once, those of others stay', async () => {
  await using owner = await anOwner();
  const { core } = owner;
  const write = async (key: string, pid: number): Promise<void> => {
    const lease = core.grant(60_000, processHolder(pid));
    await core.transact({ compare: [], write: [{ type: 'put', key, value: '{}', lease }] });
  };
  await write('live/1', 101);
  await write('controller', 101);
  await write('live/2', 102);
  await owner.endSession(asNodeId(1));
  assert.deepEqual(
    core.contents().entries.map(({ key }) => key),
    ['live/2'],
  );
  await owner.endProcess(102);
  assert.deepEqual(core.contents().entries, []);
});

test('a full disk refuses a write and keeps what is there', async () => {
  const disk = new SimulatedDisk({ seed: 1, totalBytes: 64 * 1024 });
  await using owner = await anOwner({ disk });
  const store = owner.connect();
  const { revision } = await store.transact({ compare: [], write: [{ type: 'put', key: 'map', value: 'a' }] });
  const large = { type: 'put', key: 'map', value: 'x'.repeat(128 * 1024) } as const;
  await assert.rejects(store.transact({ compare: [], write: [large] }), { code: 'DISK_FULL' });
  const small = await store.transact({ compare: [], write: [{ type: 'put', key: 'node/1', value: 'b' }] });
  assert.deepEqual(small, { done: true, revision: revision + 1 });
});

test('the socket is its user’s alone, and goes with the server', async () => {
  await using folder = await aFolder();
  await using owner = await anOwner({ disk: new NodeDisk(), folder: join(folder.path, 'map') });
  const socket = join(folder.path, 'map.sock');
  const server = await serveMapStore(owner, socket);
  assert.equal((await stat(socket)).mode & 0o777, 0o600);
  await server[Symbol.asyncDispose]();
  await assert.rejects(stat(socket));
});

test('a client is refused while the store is away, and goes on when it is back', async () => {
  await using folder = await aFolder();
  await using owner = await anOwner({ disk: new NodeDisk(), folder: join(folder.path, 'map') });
  const socket = join(folder.path, 'map.sock');
  await using client = connectMapStore(socket, systemClock, silentLog, { timeoutMs: 30 });
  await assert.rejects(
    client.transact({ compare: [], write: [{ type: 'put', key: 'a', value: '1' }] }),
    (error) => codeOf(error) === 'UNAVAILABLE' && (error as { details: { sent: boolean } }).details.sent === false,
  );
  const stop = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { changes } of client.watch(0, stop.signal)) {
      seen.push(String(changes[0]?.entry?.value));
      if (seen.length === 2) break;
    }
  })();
  const store = owner.connect();
  await store.transact({ compare: [], write: [{ type: 'put', key: 'a', value: '1' }] });
  const first = await serveMapStore(owner, socket);
  while (seen.length < 1) await client.read().catch(() => undefined);
  await first[Symbol.asyncDispose]();
  await store.transact({ compare: [], write: [{ type: 'put', key: 'a', value: '2' }] });
  await using _second = await serveMapStore(owner, socket);
  await watching;
  assert.deepEqual(seen, ['1', '2']);
});
