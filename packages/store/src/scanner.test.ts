import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chunkSums, type DiskFile, EMPTY, utf8 } from '@webdfs/base';
import { SimulatedDisk } from '@webdfs/base/testing';
import { KIND } from './entry.ts';
import { entryBytesOf, headBytesOf, stampHead, ungrouped, writeHead } from './entry-format.ts';
import { type ScanOutcome, type ScannedEntry, scanVolume } from './scanner.ts';
import { someBytes } from './testing.ts';

const VOLUME = 5;
const SALT = 77;

interface Laid {
  readonly place: number;
  readonly length: number;
}

/** A file with entries of these body sizes from place 64 on; entry i says that the file was durable up to `durable(i)`. */
async function aFile(
  sizes: readonly number[],
  durable: (index: number, laid: readonly Laid[]) => number,
): Promise<{ file: DiskFile; laid: Laid[]; size: number }> {
  const disk = new SimulatedDisk({ seed: 1 });
  const file = await disk.create('/v');
  const laid: Laid[] = [];
  let place = 64;
  for (const [i, size] of sizes.entries()) {
    const body = someBytes(size, i + 1);
    const key = utf8(`k${i}`);
    const headBytes = headBytesOf(key.length, 0, size);
    const bytes = Buffer.alloc(entryBytesOf({ headBytes, bodyBytes: size }));
    const fields = { ...ungrouped(KIND.RECORD, 0), sequence: i + 1 };
    writeHead(bytes, 0, fields, { key, meta: EMPTY, sums: chunkSums(body), bodyBytes: size });
    stampHead(bytes, 0, headBytes, { salt: SALT, volume: VOLUME, place, durable: durable(i, laid) });
    bytes.set(body, headBytes);
    await file.writev([bytes], place);
    laid.push({ place, length: bytes.length });
    place += bytes.length;
  }
  return { file, laid, size: place };
}

/** Durable up to the entry before: every commit had one entry. */
const each = (index: number, laid: readonly Laid[]): number =>
  index === 0 ? 64 : laid[index - 1]!.place + laid[index - 1]!.length;
const never = (): number => 64;

async function scan(
  file: DiskFile,
  range: { from?: number; until: number; sealed?: boolean; bodies?: boolean },
): Promise<{ steps: string[]; outcome: ScanOutcome }> {
  const steps: string[] = [];
  const outcome = await scanVolume(
    { file, volume: VOLUME, salt: SALT },
    { from: 64, sealed: false, ...range },
    (step) => {
      if (step.type === 'entry') steps.push(`${step.whole ? 'entry' : 'bad body'} ${step.head.sequence}`);
      else steps.push(`rot ${step.place}..${step.until}`);
    },
  );
  return { steps, outcome };
}

async function spoil(file: DiskFile, at: number, count = 1): Promise<void> {
  await file.writev([new Uint8Array(count).fill(0xa5)], at);
}

test('entries come in order, and the scan ends at the end of the file', async () => {
  const { file, laid, size } = await aFile([10, 100_000, 0, 1_048_576, 7], each);
  const { steps, outcome } = await scan(file, { until: size });
  assert.deepEqual(steps, ['entry 1', 'entry 2', 'entry 3', 'entry 4', 'entry 5']);
  assert.deepEqual(outcome, { end: size, durable: laid[4]!.place });
});

test('bytes and checksums of what is met are those that were written', async () => {
  const { file, size } = await aFile([70_000], each);
  const met: ScannedEntry[] = [];
  await scanVolume({ file, volume: VOLUME, salt: SALT }, { from: 64, until: size, sealed: false }, (step) => {
    if (step.type === 'entry') met.push({ ...step, body: Uint8Array.from(step.body) });
  });
  assert.equal(Buffer.compare(met[0]!.body, someBytes(70_000, 1)), 0);
  assert.deepEqual([...met[0]!.sums], [...chunkSums(someBytes(70_000, 1))]);
  assert.equal(met[0]!.raw.length, met[0]!.entryBytes);
});

test('a torn tail ends the scan without damage', async () => {
  const { file, laid, size } = await aFile([10, 5_000, 5_000], each);
  await spoil(file, laid[2]!.place + 200, 4_000);
  const { steps, outcome } = await scan(file, { until: size });
  assert.deepEqual(steps, ['entry 1', 'entry 2']);
  assert.equal(outcome.end, laid[2]!.place);
});

test('half a batch after a torn place is not taken: nothing says that it was durable', async () => {
  const { file, laid, size } = await aFile([10, 10, 10, 10], (i, all) => (i < 2 ? each(i, all) : each(2, all)));
  await spoil(file, laid[2]!.place + 20);
  const { steps, outcome } = await scan(file, { until: size });
  assert.deepEqual(steps, ['entry 1', 'entry 2']);
  assert.deepEqual(outcome, { end: laid[2]!.place, durable: laid[2]!.place });
});

test('a bad head before something that was written later is rot, and the scan goes on behind it', async () => {
  const { file, laid, size } = await aFile([10, 5_000, 10, 10], each);
  await spoil(file, laid[1]!.place + 9);
  const { steps, outcome } = await scan(file, { until: size });
  assert.deepEqual(steps, ['entry 1', `rot ${laid[1]!.place}..${laid[2]!.place}`, 'entry 3', 'entry 4']);
  assert.equal(outcome.end, size);
});

test('a bad body under a good head is met as damage, not skipped', async () => {
  const { file, laid, size } = await aFile([10, 5_000, 10], each);
  await spoil(file, laid[1]!.place + 2_000);
  const { steps } = await scan(file, { until: size });
  assert.deepEqual(steps, ['entry 1', 'bad body 2', 'entry 3']);
});

test('a head whose own body is torn still proves what went before it', async () => {
  const { file, laid, size } = await aFile([10, 5_000, 5_000], each);
  await spoil(file, laid[1]!.place + 9);
  await spoil(file, laid[2]!.place + 2_000);
  const { steps, outcome } = await scan(file, { until: size });
  assert.deepEqual(steps, ['entry 1', `rot ${laid[1]!.place}..${laid[2]!.place}`]);
  assert.deepEqual(outcome, { end: laid[2]!.place, durable: laid[2]!.place });
});

test('what a look-ahead proves counts though it is behind the torn place', async () => {
  const { file, laid, size } = await aFile([10, 10, 10, 10], (i, all) => (i < 3 ? 64 : all[1]!.place));
  await spoil(file, laid[2]!.place + 9);
  const { steps, outcome } = await scan(file, { until: size });
  assert.deepEqual(steps, ['entry 1', 'entry 2']);
  assert.deepEqual(outcome, { end: laid[2]!.place, durable: laid[1]!.place });
});

test('in a sealed file everything that does not fit is rot', async () => {
  const { file, laid, size } = await aFile([10, 10, 10], never);
  await spoil(file, laid[1]!.place + 9);
  await spoil(file, laid[2]!.place + 9);
  const { steps, outcome } = await scan(file, { until: size, sealed: true });
  assert.deepEqual(steps, ['entry 1', `rot ${laid[1]!.place}..${size}`]);
  assert.equal(outcome.end, size);
});

test('entries that a user stored inside an entry are not taken for entries', async () => {
  const { file: inner, size: innerSize } = await aFile([10, 10], each);
  const stored = new Uint8Array(innerSize);
  await inner.read(stored, 0);
  const { file, laid, size } = await aFile([10, innerSize, 10], each);
  await file.writev([stored], laid[1]!.place + 8);
  const { steps } = await scan(file, { until: size });
  assert.deepEqual(steps, ['entry 1', `rot ${laid[1]!.place}..${laid[2]!.place}`, 'entry 3']);
});

test('a scan of heads meets the same entries without their bodies', async () => {
  const { file, laid, size } = await aFile([10, 1_000_000, 10], each);
  await spoil(file, laid[1]!.place + 2_000);
  const { steps } = await scan(file, { until: size, bodies: false });
  assert.deepEqual(steps, ['entry 1', 'entry 2', 'entry 3']);
});

test('a scan can begin at any entry', async () => {
  const { file, laid, size } = await aFile([10, 10, 10], each);
  const { steps } = await scan(file, { from: laid[2]!.place, until: size });
  assert.deepEqual(steps, ['entry 3']);
});
