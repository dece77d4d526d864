import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, readWhole, SeededRandom, silentLog } from '@webdfs/base';
import { type Crash, randomOf, SimulatedDisk } from '@webdfs/base/testing';
import { EmbeddedMapOwner } from './embedded-map-owner.ts';
import type { Write } from './map-store.ts';
import type { ProcessTable } from './process-table.ts';

const FOLDER = '/data/map';

/** The process of the given life; those before it are gone. */
function life(number: number): ProcessTable {
  return {
    own: async () => ({ pid: number, start: '1', boot: 'b' }),
    gone: async ({ pid }) => pid < number,
  };
}

function open(disk: SimulatedDisk, number: number, logBytes = 700): Promise<EmbeddedMapOwner> {
  return EmbeddedMapOwner.open({
    disk,
    folder: FOLDER,
    clock: new ManualClock(),
    random: new SeededRandom(7),
    log: silentLog,
    processes: life(number),
    logBytes,
  });
}

/** What a run was told, and what it may have been about to be told. */
interface Told {
  revision: number;
  state: Map<string, string>;
  next: Map<string, string> | undefined;
}

function nextWrites(random: SeededRandom, state: ReadonlyMap<string, string>): Write[] {
  const writes = new Map<string, Write>();
  for (let i = 0; i <= random.below(3); i++) {
    const key = `node/${1 + random.below(12)}`;
    const isDelete = random.fraction() < 0.25 && state.has(key);
    const value = 'v'.repeat(random.below(90)) + random.below(1_000);
    writes.set(key, isDelete ? { type: 'delete', key } : { type: 'put', key, value });
  }
  return [...writes.values()];
}

function applied(state: ReadonlyMap<string, string>, writes: readonly Write[]): Map<string, string> {
  const next = new Map(state);
  for (const write of writes) {
    if (write.type === 'put') next.set(write.key, write.value);
    else next.delete(write.key);
  }
  return next;
}

/** Writes until the machine stops or all is done; `told` is kept up to date. */
async function work(disk: SimulatedDisk, number: number, told: Told, random: SeededRandom): Promise<void> {
  const owner = await open(disk, number);
  const store = owner.connect();
  const { revision, entries } = await store.read();
  const found = new Map(entries.map(({ key, value }) => [key, value]));
  checkFound(told, found, revision);
  told.state = found;
  told.revision = revision;
  told.next = undefined;
  for (let i = 0; i < 16; i++) {
    const writes = nextWrites(random, told.state);
    told.next = applied(told.state, writes);
    const answer = await store.transact({ compare: [], write: writes });
    told.state = told.next;
    told.next = undefined;
    told.revision = answer.revision;
  }
}

function checkFound(told: Told, found: Map<string, string>, revision: number): void {
  if (revision === told.revision) {
    assert.deepEqual(found, told.state);
  } else {
    assert.equal(revision, told.revision + 1, 'no more than the last transaction may be there unanswered');
    assert.deepEqual(found, told.next);
  }
}

/** One machine that stops at a given operation, and is started again until it has done its work. */
async function crashAt(operation: number, seed: number, crash: Crash): Promise<boolean> {
  let disk = new SimulatedDisk({ seed });
  await disk.makeFolder('/data');
  await disk.syncFolder('/');
  const random = new SeededRandom(seed);
  const told: Told = { revision: 0, state: new Map(), next: undefined };
  disk.onOperation = ({ number }) => (number === operation ? 'stop' : undefined);
  const first = disk;
  await Promise.race([work(first, 1, told, random), first.stopped]);
  if (first.running) return false;
  disk = first.crash(crash);
  // a second crash, while recovering
  const second = disk.operations + 1 + (operation % 9);
  disk.onOperation = ({ number }) => (number === second ? 'stop' : undefined);
  await Promise.race([work(disk, 2, told, random), disk.stopped]);
  await work(disk.crash(crash), 3, told, random);
  return true;
}

for (const crash of ['power', 'kill'] as const) {
  test(`the map survives a ${crash} crash at every step, exactly as it was answered`, async (t) => {
    const seed = randomOf(t).below(2 ** 31);
    // the two that make the folder above are not ours
    let operation = 3;
    // nothing is lost when only the process dies: fewer steps will do
    while (await crashAt(operation, seed + operation, crash)) operation += crash === 'power' ? 1 : 4;
    assert.ok(operation > 60, `crashed up to step ${operation}`);
  });
}

test('a sync that fails ends the store: nobody knows what became of the write', async () => {
  const disk = new SimulatedDisk({ seed: 3 });
  const owner = await open(disk, 1);
  const store = owner.connect();
  disk.onOperation = ({ action }) => (action === 'datasync' ? 'fail' : undefined);
  await assert.rejects(store.transact({ compare: [], write: [{ type: 'put', key: 'a', value: '1' }] }), {
    code: 'UNAVAILABLE',
  });
  disk.onOperation = undefined;
  await assert.rejects(store.read(), { code: 'UNAVAILABLE' });
  await assert.rejects(store.transact({ compare: [], write: [] }), { code: 'UNAVAILABLE' });
});

/** A folder whose log holds some transactions, left by a process that was killed. */
async function aLog(): Promise<{ disk: SimulatedDisk; name: string; bytes: Uint8Array }> {
  const disk = new SimulatedDisk({ seed: 3 });
  const owner = await open(disk, 1, 2 ** 20);
  const store = owner.connect();
  for (let i = 1; i <= 5; i++) {
    await store.transact({ compare: [], write: [{ type: 'put', key: `node/${i}`, value: `value ${i}` }] });
  }
  const next = disk.crash('kill');
  const name = `${FOLDER}/log-${'0'.repeat(16)}`;
  return { disk: next, name, bytes: await readWhole(next, name) };
}

async function rewrite(disk: SimulatedDisk, name: string, bytes: Uint8Array): Promise<void> {
  await disk.unlink(name);
  const file = await disk.create(name);
  await file.writev([bytes], 0);
  await file.sync();
  await file.close();
}

test('a log that ends anywhere in its last record loses that record and nothing else', async () => {
  const { bytes } = await aLog();
  const last = 16 + '[["put","node/5","value 5"]]'.length;
  for (let cut = 1; cut < last; cut += 5) {
    const { disk, name } = await aLog();
    await rewrite(disk, name, bytes.subarray(0, bytes.length - cut));
    const { revision, entries } = await (await open(disk, 2)).connect().read();
    assert.deepEqual([revision, entries.length], [4, 4], `cut by ${cut}`);
  }
});

test('a damaged record before a good one is told apart from a torn end', async () => {
  const { bytes } = await aLog();
  const last = bytes.length - 16 - '[["put","node/5","value 5"]]'.length;
  for (let offset = 0; offset < last; offset += 7) {
    const { disk, name } = await aLog();
    const damaged = bytes.slice();
    damaged[offset]! ^= 0x10;
    await rewrite(disk, name, damaged);
    await assert.rejects(open(disk, 2), { code: 'CORRUPT' }, `byte ${offset}`);
  }
});

test('a damaged snapshot is replaced by the one before it and the log between', async () => {
  const disk = new SimulatedDisk({ seed: 3 });
  const first = await open(disk, 1);
  await first.connect().transact({ compare: [], write: [{ type: 'put', key: 'map', value: 'a' }] });
  await first[Symbol.asyncDispose]();
  await (await open(disk, 2))[Symbol.asyncDispose]();
  const name = `${FOLDER}/snapshot-${'1'.padStart(16, '0')}`;
  const bytes = await readWhole(disk, name);
  bytes[bytes.length - 3]! ^= 1;
  await rewrite(disk, name, bytes);
  const { revision, entries } = await (await open(disk, 3)).connect().read();
  assert.deepEqual([revision, entries.map(({ value }) => value)], [1, ['a']]);
});

test('without any good snapshot the map refuses to start', async () => {
  const { disk } = await aLog();
  const name = `${FOLDER}/snapshot-${'0'.repeat(16)}`;
  await rewrite(disk, name, new Uint8Array(40));
  await assert.rejects(open(disk, 2), { code: 'CORRUPT' });
  await disk.unlink(name);
  await assert.rejects(open(disk, 3), { code: 'CORRUPT' });
});
