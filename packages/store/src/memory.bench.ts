import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  asGroupId,
  asPolicyId,
  chunkSums,
  NodeDisk,
  SeededRandom,
  silentLog,
  systemClock,
  SystemRandom,
  Writer,
} from '@webdfs/base';
import { FLAG, KIND, type LogEntry } from './entry.ts';
import { LevelIndexHouse } from './level-index.ts';
import { openStore } from './open-store.ts';
import type { Store } from './store.ts';

/**
 * Anonymous memory (`RssAnon`; mapped pages do not count) of a process with one store, while it takes a million objects of
 * 1 KiB and reads some of them; the slope between the half and the whole is carried on to 10 million. Gate: 1 GiB.
 *
 *     UV_THREADPOOL_SIZE=16 node --conditions=webdfs:source packages/store/src/memory.bench.ts [--folder /path] [--objects 1000000]
 */

const GATE_BYTES = 1024 ** 3;
const TARGET_OBJECTS = 10_000_000;
const WRITERS = 256;
const GROUPS = 1_024;
const MIB = 1024 * 1024;

const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    objects: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
  },
});
const objects = Number(values.objects);
const random = new SeededRandom(Number(values.seed));
const root = mkdtempSync(join(values.folder ?? tmpdir(), 'webdfs-store-memory-'));

/** Bytes; the largest of several looks, for the collector works when it likes. */
async function anonymousBytes(): Promise<number> {
  let most = 0;
  for (let i = 0; i < 5; i++) {
    const status = readFileSync('/proc/self/status', 'utf8');
    most = Math.max(most, Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1]) * 1024);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return most;
}

const sequences = Array.from({ length: GROUPS }, () => 0);

function entryOf(number: number, body: Uint8Array, sums: Uint32Array): LogEntry {
  const hash = Math.imul(number + 1, 0x9e3779b1) >>> 0;
  const group = hash % GROUPS;
  const sequence = ++sequences[group]!;
  const meta = new Uint8Array(128);
  new DataView(meta.buffer).setUint32(0, number + 1);
  const name = `photos/${hash.toString(16).padStart(8, '0')}/number-${String(number).padStart(12, '0')}.jpg`;
  return {
    policy: asPolicyId(1),
    group: asGroupId(group),
    kind: KIND.RECORD,
    flags: FLAG.LATEST_ONLY,
    sequence,
    ballot: 1,
    commit: sequence - 1,
    timeMs: systemClock.now(),
    timeCount: 0,
    hashHigh: hash,
    hashLow: number,
    key: new Writer().u32(1).raw(Buffer.from(name)).take(),
    meta,
    body,
    sums,
  };
}

async function load(store: Store, from: number, until: number): Promise<void> {
  const body = random.bytes(1_024);
  const sums = chunkSums(body);
  let next = from;
  const writer = async (): Promise<void> => {
    while (next < until) {
      const entry = entryOf(next++, body, sums);
      await store.append(entry);
      store.commit(entry, entry.sequence);
      const row = store.find(entry.key);
      if (row !== undefined && random.below(4) === 0) await store.read(row);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}

try {
  process.stdout.write(`seed ${values.seed}, node ${process.version}, ${WRITERS} writers, ${GROUPS} groups\n`);
  await using store = await openStore({
    disk: new NodeDisk(),
    index: new LevelIndexHouse(),
    folder: join(root, 'store'),
    identity: { node: 1, cluster: 'bench' },
    clock: systemClock,
    random: new SystemRandom(),
    log: silentLog,
    options: { ballast: false },
  });
  const points: { objects: number; bytes: number }[] = [{ objects: 0, bytes: await anonymousBytes() }];
  for (const share of [0.25, 0.5, 1]) {
    const until = Math.floor(objects * share);
    await load(store, points.at(-1)!.objects, until);
    points.push({ objects: until, bytes: await anonymousBytes() });
  }
  process.stdout.write('   objects   RssAnon MiB\n');
  for (const point of points) {
    process.stdout.write(`${String(point.objects).padStart(10)} ${(point.bytes / MIB).toFixed(0).padStart(13)}\n`);
  }
  const [half, whole] = [points.at(-2)!, points.at(-1)!];
  const perObject = Math.max(0, (whole.bytes - half.bytes) / (whole.objects - half.objects));
  const carried = whole.bytes + perObject * (TARGET_OBJECTS - whole.objects);
  process.stdout.write(`slope ${perObject.toFixed(1)} bytes per object\n`);
  process.stdout.write(
    `at ${TARGET_OBJECTS} objects, extrapolated: ${(carried / MIB).toFixed(0)} MiB, gate ${GATE_BYTES / MIB} MiB\n`,
  );
  process.exitCode = carried <= GATE_BYTES ? 0 : 1;
} finally {
  rmSync(root, { recursive: true, force: true });
}
