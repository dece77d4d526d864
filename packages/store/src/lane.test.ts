import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type GroupKey, ManualClock, SeededRandom, silentLog, type WebdfsError } from '@webdfs/base';
import { type DiskOperation, SimulatedDisk } from '@webdfs/base/testing';
import { Lane, type LaneOptions } from './lane.ts';
import { MAX_BATCH_ENTRIES, MAX_QUEUE_ENTRIES } from './limits.ts';
import { Logged } from './logged.ts';
import { Residency } from './residency.ts';
import { scanVolume } from './scanner.ts';
import { aRecord } from './testing.ts';
import { LANE } from './volume-format.ts';
import { type Volume, VolumeTable } from './volume-table.ts';

const GROUP = { policy: 1, group: 1 } as GroupKey;

/** A lane on a simulated disk; `events` is what happened, in order. */
class Bed {
  readonly disk = new SimulatedDisk({ seed: 3 });
  readonly clock = new ManualClock();
  readonly events: string[] = [];
  readonly failures: WebdfsError[] = [];
  readonly volumes: VolumeTable;
  readonly lane: Lane;
  readonly committed: Logged[][] = [];

  constructor(options: Partial<LaneOptions> = {}) {
    const { disk, clock } = this;
    const random = new SeededRandom(1);
    this.volumes = new VolumeTable({ disk, clock, random, folder: '/volumes', storeId: '0'.repeat(32) });
    this.lane = new Lane({
      lane: LANE.LOG,
      volumes: this.volumes,
      residency: new Residency(1e9),
      clock,
      log: silentLog,
      maxVolumeBytes: 1e9,
      hold: () => undefined,
      full: async () => undefined,
      committed: (entries) => {
        this.committed.push([...entries]);
        for (const entry of entries) entry.answer?.durable();
      },
      fatal: (error) => void this.failures.push(error),
      ...options,
    });
    this.watch(() => undefined);
  }

  watch(fate: (operation: DiskOperation) => ReturnType<NonNullable<SimulatedDisk['onOperation']>>): void {
    this.disk.onOperation = (operation) => {
      if (operation.action !== 'size') this.events.push(operation.action);
      return fate(operation);
    };
  }

  async open(): Promise<this> {
    await this.disk.makeFolder('/volumes');
    this.events.length = 0;
    return this;
  }

  push(sequence: number, size = 100): Promise<string> {
    const entry = aRecord({ sequence, body: new Uint8Array(size).fill(sequence), group: GROUP });
    const logged = new Logged(entry, entry);
    return new Promise((resolve) => {
      logged.answer = {
        durable: () => {
          this.events.push(`answer ${sequence}`);
          resolve('durable');
        },
        failed: (error) => resolve((error as WebdfsError).code),
      };
      this.lane.push(logged);
    });
  }

  async scan(volume: Volume): Promise<{ sequence: number; durable: number }[]> {
    const found: { sequence: number; durable: number }[] = [];
    const file = await this.volumes.acquire(volume);
    const range = { from: 64, until: await file.size(), sealed: false };
    await scanVolume({ file, volume: volume.id, salt: volume.salt }, range, (step) => {
      if (step.type === 'entry') found.push({ sequence: step.head.sequence, durable: step.head.durable });
    });
    this.volumes.release(volume);
    return found;
  }
}

test('what comes in one turn of the loop goes in one write and one sync, and is answered in order after it', async () => {
  const bed = await new Bed().open();
  await Promise.all([1, 2, 3].map((sequence) => bed.push(sequence)));
  const at = bed.events.indexOf('writev', bed.events.indexOf('syncFolder'));
  assert.deepEqual(bed.events.slice(at), ['writev', 'datasync', 'answer 1', 'answer 2', 'answer 3']);
  assert.deepEqual(
    bed.committed.map((batch) => batch.length),
    [3],
  );
});

test('the head and the name of a new volume are durable before its first entry is written', async () => {
  const bed = await new Bed().open();
  await bed.push(1);
  assert.deepEqual(bed.events, ['create', 'writev', 'sync', 'syncFolder', 'writev', 'datasync', 'answer 1']);
});

test('what comes while a commit is in flight goes with the next', async () => {
  const bed = await new Bed().open();
  let more: Promise<string>[] = [];
  bed.watch(({ action }) => {
    if (action === 'datasync' && more.length === 0) more = [bed.push(2), bed.push(3)];
    return undefined;
  });
  await bed.push(1);
  await Promise.all(more);
  assert.deepEqual(
    bed.committed.map((batch) => batch.map((entry) => entry.sequence)),
    [[1], [2, 3]],
  );
});

test('heads tell how far the file was durable, and that grows', async () => {
  const bed = await new Bed().open();
  for (let sequence = 1; sequence <= 4; sequence++) await bed.push(sequence);
  const found = await bed.scan(bed.lane.volume!);
  assert.deepEqual(
    found.map(({ sequence }) => sequence),
    [1, 2, 3, 4],
  );
  const places = bed.committed.flat().map((entry) => entry.place);
  assert.deepEqual(
    found.map(({ durable }) => durable),
    places,
  );
});

test('a commit has at most so many entries', async () => {
  const bed = await new Bed().open();
  await Promise.all(Array.from({ length: MAX_BATCH_ENTRIES + 1 }, (_, i) => bed.push(i + 1, 0)));
  assert.deepEqual(
    bed.committed.map((batch) => batch.length),
    [MAX_BATCH_ENTRIES, 1],
  );
});

test('beyond the bounds of the queue entries wait outside it, in order', async () => {
  const bed = await new Bed().open();
  const count = MAX_QUEUE_ENTRIES + 500;
  await Promise.all(Array.from({ length: count }, (_, i) => bed.push(i + 1, 0)));
  const order = bed.committed.flat().map((entry) => entry.sequence);
  assert.equal(order.length, count);
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
  );
});

test('a failed fdatasync stops the lane for good, and the file is never synced again', async () => {
  const bed = await new Bed().open();
  await bed.push(1);
  let synced = 0;
  bed.watch(({ action }) => {
    if (action !== 'datasync') return undefined;
    synced += 1;
    return 'fail';
  });
  const second = bed.push(2);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(await Promise.all([second, bed.push(3), bed.push(4)]), [
    'DISK_FAILED',
    'DISK_FAILED',
    'DISK_FAILED',
  ]);
  assert.equal(synced, 1);
  assert.deepEqual(
    bed.failures.map((error) => error.code),
    ['DISK_FAILED'],
  );
});

test('a write that finds the disk full refuses its batch and what is queued, seals at what is durable, and goes on in a new volume', async () => {
  const bed = await new Bed().open();
  await bed.push(1);
  const first = bed.lane.volume!;
  const durable = first.durable;
  let refuse = true;
  bed.watch(({ action }) => {
    if (action !== 'writev' || !refuse) return undefined;
    refuse = false;
    return 'full';
  });
  assert.deepEqual(await Promise.all([bed.push(2), bed.push(3)]), ['DISK_FULL', 'DISK_FULL']);
  assert.equal(await bed.push(4), 'durable');
  assert.equal(first.state, 'sealed');
  assert.equal(first.end, durable);
  assert.notEqual(bed.lane.volume, first);
  assert.deepEqual(bed.failures, []);
});

test('while a half-written volume cannot be sealed for want of space, its batch is neither refused nor is anything else written', async () => {
  const bed = await new Bed().open();
  await bed.push(1);
  const first = bed.lane.volume!;
  let full = true;
  bed.watch(({ action }) => (full && action === 'writev' ? 'full' : undefined));
  const answers: string[] = [];
  const second = bed.push(2).then((answer) => answers.push(answer));
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(answers, []);
  assert.equal(first.state, 'open');
  full = false;
  bed.clock.advance(60_000);
  await second;
  assert.deepEqual(answers, ['DISK_FULL']);
  assert.equal(first.state, 'sealed');
  assert.equal(await bed.push(4), 'durable');
  assert.deepEqual(
    (await bed.scan(bed.lane.volume!)).map(({ sequence }) => sequence),
    [4],
  );
});

test('what comes while a half-written volume waits for its seal is refused with the batch that it is behind', async () => {
  const bed = await new Bed().open();
  await bed.push(1);
  let full = true;
  bed.watch(({ action }) => (full && action === 'writev' ? 'full' : undefined));
  const answers = [bed.push(2)];
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  answers.push(bed.push(3));
  full = false;
  bed.clock.advance(60_000);
  assert.deepEqual(await Promise.all(answers), ['DISK_FULL', 'DISK_FULL']);
  assert.equal(await bed.push(4), 'durable');
  assert.deepEqual(
    (await bed.scan(bed.lane.volume!)).map(({ sequence }) => sequence),
    [4],
  );
});

test('a short write is continued', async () => {
  const bed = await new Bed().open();
  bed.watch(({ action, bytes }) => (action === 'writev' && bytes > 64 ? 'short' : undefined));
  assert.equal(await bed.push(1, 40_000), 'durable');
  bed.disk.onOperation = undefined;
  assert.deepEqual(
    (await bed.scan(bed.lane.volume!)).map(({ sequence }) => sequence),
    [1],
  );
});

test('a full volume is sealed before the next one is made', async () => {
  const bed = await new Bed({ maxVolumeBytes: 1_000 }).open();
  for (let sequence = 1; sequence <= 3; sequence++) await bed.push(sequence, 900);
  const [first, second] = [...bed.volumes.all()];
  assert.equal(first!.state, 'sealed');
  assert.equal(first!.end, first!.durable);
  assert.ok(second !== undefined);
  const sealed = bed.events.lastIndexOf('create');
  assert.deepEqual(bed.events.slice(sealed - 2, sealed), ['writev', 'sync']);
});

test('an idle lane proves its last commit once, and then is quiet', async () => {
  const bed = await new Bed().open();
  await bed.push(1);
  bed.clock.advance(1_000);
  await bed.lane.drain();
  bed.clock.advance(60_000);
  await bed.lane.drain();
  const found = await bed.scan(bed.lane.volume!);
  assert.equal(found.length, 2);
  assert.equal(found[1]!.durable, bed.committed[1]![0]!.place);
  assert.equal(bed.lane.counters.marks, 1);
});

test('a lane waits while it is held', async () => {
  let release: (() => void) | undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let asked = 0;
  const bed = await new Bed({ hold: () => (asked++ === 0 ? held : undefined) }).open();
  const answer = bed.push(1);
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(bed.events, []);
  release!();
  assert.equal(await answer, 'durable');
});

test('a closed lane leaves a sealed volume', async () => {
  const bed = await new Bed().open();
  await bed.push(1);
  await bed.lane.close();
  const [volume] = [...bed.volumes.all()];
  assert.equal(volume!.state, 'sealed');
  assert.equal(volume!.references, 0);
});
