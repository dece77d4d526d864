import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  asGroupId,
  asPolicyId,
  chunkSums,
  type DiskFile,
  type GroupKey,
  NodeDisk,
  SeededRandom,
  silentLog,
  systemClock,
  SystemRandom,
  writeFully,
  Writer,
} from '@webdfs/base';
import { FLAG, KIND, type LogEntry } from './entry.ts';
import { LevelIndexHouse } from './level-index.ts';
import { openStore } from './open-store.ts';
import type { Store } from './store.ts';

/**
 * What one node's store costs: CPU µs per operation (all threads of the process; the figure that holds on shared machines)
 * and operations per second, for appends (durable and applied) and reads (verified), beside a plain file that is written
 * and synced by the same number of writers.
 *
 *     node --conditions=webdfs:source packages/store/src/store.bench.ts [--folder /path] [--seconds 2] [--seed 1]
 */

const KIB = 1024;
const SIZES = [4 * KIB, 128 * KIB, 1024 * KIB];
const WRITERS = [1, 8, 32];
const GROUPS = 64;
const ROUNDS = 3;

interface Result {
  readonly cpuMicros: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    seconds: { type: 'string', default: '2' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
});
const seconds = Number(values.seconds);
const random = new SeededRandom(Number(values.seed));
const root = mkdtempSync(join(values.folder ?? tmpdir(), 'webdfs-store-bench-'));

/** Runs `work` with so many workers for a while, several times; the middle round counts. */
async function measure(workers: number, work: (worker: number) => Promise<void>): Promise<Result> {
  const rounds: Result[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const result = await measureOnce(workers, work, round === 0 ? seconds / 4 : seconds);
    if (round > 0) rounds.push(result);
  }
  return rounds.toSorted((a, b) => a.cpuMicros - b.cpuMicros)[Math.floor(ROUNDS / 2)]!;
}

async function measureOnce(
  workers: number,
  work: (worker: number) => Promise<void>,
  forSeconds: number,
): Promise<Result> {
  const until = systemClock.monotonic() + forSeconds * 1_000;
  const began = systemClock.monotonic();
  const cpu = process.cpuUsage();
  const latencies: number[] = [];
  const run = async (worker: number): Promise<void> => {
    for (let now = systemClock.monotonic(); now < until;) {
      await work(worker);
      const then = now;
      now = systemClock.monotonic();
      latencies.push(now - then);
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => run(worker)));
  const used = process.cpuUsage(cpu);
  const order = latencies.toSorted((a, b) => a - b);
  return {
    cpuMicros: (used.user + used.system) / latencies.length,
    perSecond: (latencies.length / (systemClock.monotonic() - began)) * 1_000,
    p50: order[Math.floor(order.length * 0.5)]!,
    p99: order[Math.floor(order.length * 0.99)]!,
  };
}

function print(what: string, size: number, workers: number, result: Result): void {
  const mega = (result.perSecond * size) / 1e6;
  const columns = [
    what.padEnd(22),
    `${size / KIB} KiB`.padStart(9),
    String(workers).padStart(4),
    result.cpuMicros.toFixed(1).padStart(10),
    result.perSecond.toFixed(0).padStart(9),
    mega.toFixed(0).padStart(7),
    result.p50.toFixed(3).padStart(9),
    result.p99.toFixed(3).padStart(9),
  ];
  process.stdout.write(`${columns.join(' ')}\n`);
}

function groupOf(number: number): GroupKey {
  return { policy: asPolicyId(1), group: asGroupId(number) };
}

function keyOf(number: number): Uint8Array {
  return new Writer()
    .u32(1)
    .raw(new TextEncoder().encode(`bench/objects/number-${String(number).padStart(12, '0')}`))
    .take();
}

const sequences = Array.from({ length: GROUPS }, () => 0);

function entryOf(number: number, body: Uint8Array, sums: Uint32Array): LogEntry {
  const group = number % GROUPS;
  const sequence = ++sequences[group]!;
  const meta = new Uint8Array(16 + 32 + 80);
  new DataView(meta.buffer).setUint32(0, number + 1);
  return {
    ...groupOf(group),
    kind: KIND.RECORD,
    flags: FLAG.LATEST_ONLY,
    sequence,
    ballot: 1,
    commit: sequence - 1,
    timeMs: systemClock.now(),
    timeCount: 0,
    hashHigh: Math.imul(number, 0x9e3779b1) >>> 0,
    hashLow: number,
    key: keyOf(number),
    meta,
    body,
    sums,
  };
}

/** A piece of data as large as asked: a record, or a block of one piece and its entry. */
async function put(store: Store, number: number, body: Uint8Array, sums: Uint32Array): Promise<void> {
  if (body.length <= 256 * KIB) {
    const entry = entryOf(number, body, sums);
    await store.append(entry);
    store.commit(entry, entry.sequence);
    return;
  }
  const id = new Uint8Array(20);
  new DataView(id.buffer).setUint32(0, number + 1);
  const group = groupOf(number % GROUPS);
  const staging = store.stage(group, id);
  await staging.write(body);
  const whole = await staging.finish();
  const named = new Writer().u32(whole.size);
  for (const sum of whole.sums) named.u32(sum);
  const packed = named.take();
  const entry = { ...entryOf(number, packed, chunkSums(packed)), kind: KIND.BLOCK, flags: 0, key: id };
  await store.append(entry);
  store.commit(entry, entry.sequence);
}

async function get(store: Store, number: number, size: number, target: Uint8Array): Promise<void> {
  if (size <= 256 * KIB) {
    await store.read(store.find(keyOf(number))!);
    return;
  }
  const id = new Uint8Array(20);
  new DataView(id.buffer).setUint32(0, number + 1);
  await store.readBlock(store.findBlock(groupOf(number % GROUPS), id)!, 0, target);
}

async function benchStore(size: number): Promise<void> {
  const folder = join(root, `store-${size}`);
  await using store = await openStore({
    disk: new NodeDisk(),
    index: new LevelIndexHouse(),
    folder,
    identity: { node: 1, cluster: 'bench' },
    clock: systemClock,
    random: new SystemRandom(),
    log: silentLog,
    options: { ballast: false },
  });
  sequences.fill(0);
  const body = random.bytes(size);
  const sums = chunkSums(body);
  let count = 0;
  for (const workers of WRITERS) {
    print('append and apply', size, workers, await measure(workers, () => put(store, count++, body, sums)));
  }
  const hot = Math.max(1, Math.min(count - 64, Math.floor((256 * KIB * KIB) / size)));
  for (const workers of WRITERS) {
    const target = new Uint8Array(size);
    print(
      'read, hot',
      size,
      workers,
      await measure(workers, () => get(store, count - 64 - random.below(hot), size, target)),
    );
  }
}

/** The baseline: one file, each round of writers' bytes in one write and one `fdatasync`. */
async function benchFile(size: number): Promise<void> {
  const disk = new NodeDisk();
  await mkdir(root, { recursive: true });
  const file: DiskFile = await disk.create(join(root, `plain-${size}`));
  const body = random.bytes(size);
  let position = 0;
  let waiting: (() => void)[] = [];
  let running = false;
  const flush = async (): Promise<void> => {
    running = true;
    await new Promise((resolve) => setImmediate(resolve));
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      const buffers = batch.map(() => body);
      const at = position;
      position += size * batch.length;
      if (size * batch.length <= 256 * KIB) file.writevSync(buffers, at);
      else await writeFully(file, buffers, at);
      await file.datasync();
      for (const resolve of batch) resolve();
    }
    running = false;
  };
  const append = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (!running) void flush();
    });
  for (const workers of WRITERS) print('plain file, fdatasync', size, workers, await measure(workers, append));
  const target = new Uint8Array(size);
  const places = Math.max(1, Math.floor(Math.min(position, 256 * KIB * KIB) / size));
  const read = async (): Promise<void> => void file.readSync(target, random.below(places) * size);
  for (const workers of WRITERS) print('plain file, pread', size, workers, await measure(workers, read));
  await file.close();
}

try {
  process.stdout.write(`seed ${values.seed}, node ${process.version}, fdatasync on, folder ${root}\n`);
  process.stdout.write('what                        size    n   CPU µs/op      op/s    MB/s    p50 ms    p99 ms\n');
  for (const size of SIZES) {
    if (values.only !== undefined && Number(values.only) !== size / KIB) continue;
    await benchStore(size);
    await benchFile(size);
    rmSync(root, { recursive: true, force: true });
  }
} finally {
  rmSync(root, { recursive: true, force: true });
}
