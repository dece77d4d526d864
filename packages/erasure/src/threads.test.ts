import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { codeOf, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import type { Kernel, SharedKernel } from './kernel.ts';
import { joinKernel, openKernel } from './open-kernel.ts';
import { ReedSolomon } from './reed-solomon.ts';

/** What a thread is to do: encode the bytes [from, to) of shards that lie at these offsets. */
interface Errand {
  readonly shared: SharedKernel;
  readonly offsets: readonly number[];
  readonly from: number;
  readonly to: number;
}

const SHAPE = { data: 4, parity: 2 } as const;

function run({ shared, offsets, from, to }: Errand): void {
  const kernel = joinKernel(shared);
  const shards = offsets.map((offset) => kernel.memory.view(offset + from, to - from));
  new ReedSolomon({ kernel, ...SHAPE }).encode(shards.slice(0, 4), shards.slice(4));
}

/** Has another thread encode a range of the stripe; it gets offsets, not bytes. */
async function encodeElsewhere(kernel: Kernel, stripe: Omit<Errand, 'shared'>): Promise<void> {
  const shared = kernel.share();
  const errand: Errand = { shared, ...stripe };
  const worker = new Worker(new URL(import.meta.url), { workerData: errand });
  const [exitCode] = await once(worker, 'exit');
  assert.equal(exitCode, 0);
  kernel.unshare(shared);
}

if (!isMainThread) run(workerData as Errand);

for (const name of isMainThread ? (['relaxed', 'plain'] as const) : []) {
  test(`${name}: two threads encode halves of one stripe in one memory, and nothing is copied`, async (t) => {
    const random = new SeededRandom(seedOf(t));
    const kernel = openKernel({ name, shared: true, memoryBytes: 2_000_000 });
    const code = new ReedSolomon({ kernel, ...SHAPE });
    const bytes = 20_001;
    const shards = Array.from({ length: 6 }, () => kernel.memory.allocate(bytes));
    for (const shard of shards.slice(0, 4)) shard.set(random.bytes(bytes));
    const offsets = shards.map((shard) => shard.byteOffset);
    await Promise.all([
      encodeElsewhere(kernel, { offsets, from: 0, to: 9_999 }),
      encodeElsewhere(kernel, { offsets, from: 9_999, to: bytes }),
    ]);
    assert.equal(code.verify(shards), true);
    assert.ok(shards[5]!.some((byte) => byte !== 0));
    // what the threads used is given back
    for (const shard of shards) kernel.memory.free(shard);
    assert.equal(kernel.memory.allocate(1_999_936).length, 1_999_936);
  });

  test(`${name}: memory that is not shared cannot be`, () => {
    assert.throws(
      () => openKernel({ name }).share(),
      (error) => codeOf(error) === 'UNSUPPORTED',
    );
  });
}
