import assert from 'node:assert/strict';
import test from 'node:test';
import { asGroupId, asPolicyId, chunkSums, EMPTY, ManualClock, WebdfsError } from '@webdfs/base';
import { KIND, type LogEntry } from '@webdfs/store';
import { packBlockBody } from './block-entry.ts';
import { GroupDisk } from './group-disk.ts';

const KEY = { policy: asPolicyId(1), group: asGroupId(0) };

function anEntry(sequence: number, kind: LogEntry['kind'] = KIND.RECORD): LogEntry {
  const body = kind === KIND.BLOCK ? packBlockBody(3, Uint32Array.of(sequence)) : EMPTY;
  const rest = { flags: 0, ballot: 1, commit: 0, timeMs: 0, timeCount: 0, hashHigh: 0, hashLow: 0 };
  return { ...KEY, kind, sequence, key: Uint8Array.of(sequence), meta: EMPTY, body, sums: chunkSums(body), ...rest };
}

interface Asked {
  readonly entry: LogEntry;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** A store that answers when told to, and what the disk reported. */
function aDisk(): {
  disk: GroupDisk;
  asked: Asked[];
  durable: number[];
  failures: unknown[];
  staged: Map<number, Uint32Array>;
  obtained: number[];
  clock: ManualClock;
} {
  const asked: Asked[] = [];
  const durable: number[] = [];
  const failures: unknown[] = [];
  const obtained: number[] = [];
  const staged = new Map<number, Uint32Array>();
  const clock = new ManualClock();
  const disk = new GroupDisk({
    key: KEY,
    clock,
    store: {
      append: (entry) => new Promise((resolve, reject) => void asked.push({ entry, resolve, reject })),
      cut: () => Promise.resolve(),
      staged: (id) => {
        const sums = staged.get(id[0]!);
        return sums === undefined ? undefined : { size: 3, sums };
      },
    },
    obtain: async (entry) => {
      obtained.push(entry.sequence);
      staged.set(entry.key[0]!, Uint32Array.of(entry.sequence));
    },
    news: { durable: (upTo) => void durable.push(upTo), failed: (error) => void failures.push(error) },
  });
  return { disk, asked, durable, failures, staged, obtained, clock };
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('what is durable is reported without gaps, in whatever order the store answers', async () => {
  const { disk, asked, durable } = aDisk();
  for (const sequence of [1, 2, 3]) disk.append(anEntry(sequence));
  asked[1]!.resolve();
  await turn();
  assert.deepEqual(durable, []);
  asked[0]!.resolve();
  await turn();
  assert.deepEqual(durable, [2]);
  asked[2]!.resolve();
  await turn();
  assert.deepEqual(durable, [2, 3]);
  assert.ok(disk.isIdle);
});

test('a block whose bytes are missing is fetched first, and what follows waits behind it', async () => {
  const { disk, asked, obtained } = aDisk();
  disk.append(anEntry(1, KIND.BLOCK));
  disk.append(anEntry(2));
  assert.equal(asked.length, 0);
  await turn();
  assert.deepEqual(obtained, [1]);
  assert.deepEqual(
    asked.map(({ entry }) => entry.sequence),
    [1, 2],
  );
});

test('staged bytes with other sums are fetched anew', async () => {
  const { disk, staged, obtained } = aDisk();
  staged.set(1, Uint32Array.of(99));
  disk.append(anEntry(1, KIND.BLOCK));
  await turn();
  assert.deepEqual(obtained, [1]);
});

test('what a full disk refused is offered again with all behind it, in order', async () => {
  const { disk, asked, durable, failures, clock } = aDisk();
  disk.append(anEntry(1));
  disk.append(anEntry(2));
  asked[0]!.reject(new WebdfsError('DISK_FULL', 'on purpose'));
  asked[1]!.reject(new WebdfsError('NOT_SYNCED', 'on purpose'));
  await turn();
  disk.append(anEntry(3));
  assert.equal(asked.length, 2);
  clock.advance(500);
  assert.deepEqual(
    asked.slice(2).map(({ entry }) => entry.sequence),
    [1, 2, 3],
  );
  for (const { resolve } of asked.slice(2)) resolve();
  await turn();
  assert.deepEqual(durable, [1, 2, 3]);
  assert.deepEqual(failures, []);
});

test('what was cut is not reported, though the store had it already', async () => {
  const { disk, asked, durable } = aDisk();
  disk.append(anEntry(1));
  disk.append(anEntry(2));
  disk.cut(1, 5);
  asked[1]!.resolve();
  asked[0]!.resolve();
  await turn();
  assert.deepEqual(durable.at(-1), 1);
  assert.ok(!durable.includes(2));
});

test('withdrawing takes back what the store has not been given', async () => {
  const { disk, asked } = aDisk();
  disk.append(anEntry(1));
  disk.append(anEntry(2, KIND.BLOCK));
  disk.append(anEntry(3));
  assert.equal(disk.withdraw(), 2);
  await turn();
  assert.equal(asked.length, 1);
  assert.equal(disk.withdraw(), undefined);
});

test('a disk that has failed is reported, and nothing is tried again', async () => {
  const { disk, asked, failures, clock } = aDisk();
  disk.append(anEntry(1));
  asked[0]!.reject(new WebdfsError('DISK_FAILED', 'on purpose'));
  await turn();
  clock.advance(5_000);
  assert.equal(failures.length, 1);
  assert.equal(asked.length, 1);
});
