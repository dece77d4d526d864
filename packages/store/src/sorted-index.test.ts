import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeOf, NodeDisk, SeededRandom } from '@webdfs/base';
import { randomOf, SimulatedDisk } from '@webdfs/base/testing';
import { lastBatchOf, numberedBatch, testRowIndex } from './index-conformance.ts';
import { SortedIndexHouse } from './sorted-index.ts';

async function aFolder(random: SeededRandom): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk({ seed: random.uint32() });
  await disk.makeFolder('/s');
  await disk.syncFolder('/');
  return disk;
}

testRowIndex('sorted', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-sorted-'));
  return {
    house: new SortedIndexHouse({ disk: new NodeDisk(), random: new SeededRandom(1) }),
    folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
});

/** Writes numbered batches until the machine stops; what was answered, and answered as synced. */
async function writeUntilStopped(disk: SimulatedDisk, random: SeededRandom): Promise<{ last: number; synced: number }> {
  const index = await new SortedIndexHouse({ disk, random }).open('/s/index');
  await disk.syncFolder('/s');
  const seen = { last: 0, synced: 0 };
  const stopAt = disk.operations + 1 + random.below(60);
  disk.onOperation = ({ number }) => (number >= stopAt ? 'stop' : undefined);
  const write = async (): Promise<void> => {
    for (let number = 1; ; number++) {
      const sync = random.below(5) === 0;
      await index.batch(numberedBatch(random, number), { sync });
      seen.last = number;
      if (sync) seen.synced = number;
    }
  };
  await Promise.race([write(), disk.stopped]);
  return seen;
}

test('a crash leaves the rows of a prefix that holds the last synced batch, a kill all that were answered', async (t) => {
  const random = randomOf(t);
  let lost = 0;
  for (let round = 0; round < 150; round++) {
    const disk = await aFolder(random);
    const seen = await writeUntilStopped(disk, random);
    const crash = random.below(2) === 0 ? 'kill' : 'power';
    let next = disk.crash(crash);
    const last = await lastBatchOf(await new SortedIndexHouse({ disk: next, random }).open('/s/index'));
    assert.ok(
      last >= (crash === 'kill' ? seen.last : seen.synced),
      `${last} rows after ${crash}, ${seen.synced} synced`,
    );
    assert.ok(last <= seen.last + 1);
    if (last < seen.last) lost += 1;
    // What was recovered is synced: a second power cut takes nothing away.
    next = next.crash('power');
    assert.equal(await lastBatchOf(await new SortedIndexHouse({ disk: next, random }).open('/s/index')), last);
  }
  assert.ok(lost > 0);
});

test('a disk that refuses a batch loses the index: it and all later batches answer CORRUPT', async (t) => {
  const random = randomOf(t);
  const disk = await aFolder(random);
  await using index = await new SortedIndexHouse({ disk, random }).open('/s/index');
  disk.onOperation = ({ action }) => (action === 'writev' ? 'fail' : undefined);
  await assert.rejects(index.batch(numberedBatch(random, 1)), (error) => codeOf(error) === 'CORRUPT');
  disk.onOperation = undefined;
  await assert.rejects(index.batch(numberedBatch(random, 2)), (error) => codeOf(error) === 'CORRUPT');
});
