import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concat, equalBytes, fromUtf8, utf8 } from './bytes.ts';
import { ManualClock } from './clock.ts';
import { type DiskFile, readWhole, replaceWhole, writeFully } from './disk.ts';
import { testDisk } from './disk-conformance.ts';
import { codeOf } from './errors.ts';
import { SeededRandom } from './random.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import { MachineStopped } from './simulated-file.ts';
import { randomOf, seedOf } from './testing.ts';

const ROUNDS = 200;

async function aDisk(seed: number): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk({ seed });
  await disk.makeFolder('/d');
  await disk.syncFolder('/');
  return disk;
}

testDisk('simulated', async () => ({
  disk: await aDisk(1),
  folder: '/d',
  [Symbol.asyncDispose]: () => Promise.resolve(),
}));

/** A file `/d/f` whose folder entry is durable, holding `bytes`, synced. */
async function aFile(disk: SimulatedDisk, bytes: Uint8Array): Promise<DiskFile> {
  const file = await disk.create('/d/f');
  await writeFully(file, [bytes], 0);
  await file.sync();
  await disk.syncFolder('/d');
  return file;
}

test('a power cut keeps every byte that was synced, whatever else it does', async (t) => {
  const random = randomOf(t);
  for (let round = 0; round < ROUNDS; round++) {
    const disk = await aDisk(random.uint32());
    const first = random.bytes(random.below(3000));
    const file = await aFile(disk, first);
    const second = random.bytes(random.below(3000));
    await writeFully(file, [second], first.length);
    await file.datasync();
    await writeFully(file, [random.bytes(random.below(3000))], first.length + second.length);
    const after = await readWhole(disk.crash('power'), '/d/f');
    const synced = concat([first, second]);
    assert.ok(after.length >= synced.length);
    assert.ok(equalBytes(after.subarray(0, synced.length), synced));
  }
});

test('what was not synced is lost, kept, torn and kept out of order by a power cut, and kept by a kill', async (t) => {
  const random = randomOf(t);
  const seen = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const disk = await aDisk(random.uint32());
    const file = await aFile(disk, new Uint8Array(0));
    await writeFully(file, [new Uint8Array(700).fill(1)], 0);
    await writeFully(file, [new Uint8Array(700).fill(2)], 700);
    const whole = concat([new Uint8Array(700).fill(1), new Uint8Array(700).fill(2)]);
    const killed = disk.crash('kill');
    assert.ok(equalBytes(await readWhole(killed, '/d/f'), whole));
    const after = await readWhole(killed.crash('power'), '/d/f');
    const [one, two] = [after.subarray(0, 700), after.subarray(700)];
    if (after.length === 0) seen.add('lost');
    else if (equalBytes(after, whole)) seen.add('kept');
    else if (two.some((byte) => byte === 2) && !one.every((byte) => byte === 1)) seen.add('out of order');
    else if (one.some((byte) => byte === 1) && !one.every((byte) => byte === 1)) seen.add('torn');
  }
  assert.deepEqual([...seen].sort(), ['kept', 'lost', 'out of order', 'torn']);
});

test('a sync covers the writes made before it began, not those made while it runs', async (t) => {
  const random = randomOf(t);
  let lost = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const disk = await aDisk(random.uint32());
    const file = await aFile(disk, new Uint8Array(0));
    file.writevSync([utf8('before')], 0);
    const synced = file.datasync();
    file.writevSync([utf8('during')], 6);
    await synced;
    const after = await readWhole(disk.crash('power'), '/d/f');
    assert.ok(equalBytes(after.subarray(0, 6), utf8('before')));
    if (!equalBytes(after, utf8('beforeduring'))) lost += 1;
  }
  assert.ok(lost > 0);
});

test('of folder changes that were not synced a power cut keeps a prefix', async (t) => {
  const random = randomOf(t);
  const left = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const disk = await aDisk(random.uint32());
    for (const name of ['a', 'b']) await (await disk.create(`/d/${name}`)).close();
    await disk.rename('/d/a', '/d/c');
    left.add((await disk.crash('power').list('/d')).join());
  }
  assert.deepEqual([...left].sort(), ['', 'a', 'a,b', 'b,c']);
});

test('a file replaced whole is old or new after a stop at any of its operations', async (t) => {
  const random = randomOf(t);
  const outcomes = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const disk = await aDisk(random.uint32());
    await replaceWhole(disk, '/d', 'f', utf8('old'));
    const at = disk.operations + 1 + random.below(9);
    disk.onOperation = ({ number }) => (number === at ? 'stop' : undefined);
    await Promise.race([replaceWhole(disk, '/d', 'f', utf8('new')), disk.stopped]);
    const next = disk.crash(random.below(2) === 0 ? 'kill' : 'power');
    outcomes.add(new TextDecoder().decode(await readWhole(next, '/d/f')));
  }
  assert.deepEqual([...outcomes].sort(), ['new', 'old']);
});

test('after a failed sync the cache shows what the disk does not hold, and the next sync reports success', async (t) => {
  const random = randomOf(t);
  let lied = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const disk = await aDisk(random.uint32());
    const file = await aFile(disk, utf8('safe'));
    await writeFully(file, [utf8('gone')], 4);
    disk.onOperation = ({ action }) => (action === 'datasync' ? 'fail' : undefined);
    await assert.rejects(file.datasync(), (error) => codeOf(error) === 'DISK_FAILED');
    disk.onOperation = undefined;
    await file.datasync();
    assert.ok(equalBytes(await readWhole(disk, '/d/f'), utf8('safegone')));
    const after = await readWhole(disk.crash('power'), '/d/f');
    assert.ok(equalBytes(after.subarray(0, 4), utf8('safe')));
    if (!equalBytes(after, utf8('safegone'))) lied += 1;
  }
  assert.ok(lied > 0);
});

test('a full disk writes what fits, then refuses, and takes writes again when space is back', async () => {
  const disk = await aDisk(7);
  const file = await aFile(disk, new Uint8Array(90));
  disk.limit(100);
  assert.equal((await disk.space('/d')).free, 10);
  assert.equal(await file.writev([new Uint8Array(30)], 90), 10);
  await assert.rejects(file.writev([new Uint8Array(30)], 100), (error) => codeOf(error) === 'DISK_FULL');
  assert.throws(
    () => file.writevSync([new Uint8Array(1)], 100),
    (error) => codeOf(error) === 'DISK_FULL',
  );
  assert.equal(await file.writev([new Uint8Array(50)], 50), 50);
  disk.limit(200);
  assert.equal(await file.writev([new Uint8Array(30)], 100), 30);
});

test('fates make writes short or refused half done, and syncs lie', async () => {
  const disk = await aDisk(11);
  const file = await aFile(disk, new Uint8Array(0));
  disk.onOperation = ({ action }) => (action === 'writev' ? 'short' : 'lie');
  const written = await file.writev([new Uint8Array(100).fill(3)], 0);
  assert.ok(written >= 1);
  assert.ok(written <= 100);
  disk.onOperation = ({ action }) => (action === 'writev' ? 'full' : 'fail');
  await assert.rejects(file.writev([new Uint8Array(9)], 0), (error) => codeOf(error) === 'DISK_FULL');
  await assert.rejects(disk.list('/d'), (error) => codeOf(error) === 'DISK_FAILED');
  await assert.rejects(file.sync(), (error) => codeOf(error) === 'DISK_FAILED');
});

test('a bit turned over shows in reads of clean bytes and stays over crashes', async () => {
  const disk = await aDisk(13);
  await aFile(disk, utf8('abc'));
  const [first] = disk.files();
  assert.ok(first !== undefined);
  const [path, inode] = first;
  assert.equal(path, '/d/f');
  inode.flip(1, 0);
  assert.deepEqual(await readWhole(disk, '/d/f'), utf8('acc'));
  assert.deepEqual(await readWhole(disk.crash('power'), '/d/f'), utf8('acc'));
});

test('nothing of a life goes on after it: operations under way and later ones never answer', async () => {
  const disk = await aDisk(17);
  const file = await aFile(disk, utf8('x'));
  let answered = 0;
  const count = (): void => void (answered += 1);
  void file.writev([utf8('y')], 0).then(count, count);
  disk.stop();
  const next = disk.crash('kill');
  void file.datasync().then(count, count);
  void disk.unlink('/d/f').then(count, count);
  assert.throws(() => file.readSync(new Uint8Array(1), 0), MachineStopped);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  assert.equal(answered, 0);
  assert.deepEqual(await next.list('/d'), ['f']);
});

test('one seed gives one history', async (t) => {
  const seed = seedOf(t);
  const history = async (): Promise<string> => {
    const random = new SeededRandom(seed);
    let disk = new SimulatedDisk({ seed, clock: new ManualClock() });
    await disk.makeFolder('/d');
    await disk.syncFolder('/');
    let text = '';
    for (let life = 0; life < 5; life++) {
      const file = await disk.create(`/d/${life}`);
      void file.sync();
      void disk.syncFolder('/d');
      for (let i = 0; i < 5; i++) void file.writev([random.bytes(900)], random.below(2000));
      for (let turn = random.below(6); turn > 0; turn--) await new Promise(setImmediate);
      disk = disk.crash(random.below(2) === 0 ? 'kill' : 'power');
      for (const [path, inode] of disk.files()) text += `${path} ${Buffer.from(inode.durableBytes()).toString('hex')} `;
    }
    return text;
  };
  assert.equal(await history(), await history());
});

test('a copy shows what was there when it was made, and survives a power cut as a whole', async () => {
  const disk = new SimulatedDisk({ seed: 1 });
  await disk.makeFolder('/a/b');
  const file = await disk.create('/a/b/f');
  await writeFully(file, [utf8('first')], 0);
  const copy = disk.copy(2);
  await writeFully(file, [utf8('later')], 0);
  await disk.unlink('/a/b/f');
  const after = copy.crash('power');
  assert.equal(fromUtf8(await readWhole(after, '/a/b/f')), 'first');
  assert.deepEqual(await disk.list('/a/b'), []);
});
