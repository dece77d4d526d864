import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asPolicyId, WebdfsError } from '@webdfs/base';
import type { BlockRow, Store } from '@webdfs/store';
import { verifyItems } from './verify.ts';

const GROUP = { policy: asPolicyId(1), group: asGroupId(3) };

// Found by the simulator: such a block was never repaired, and kept the garbage of its whole group from being looked at.
test('a block whose bytes are good and whose own entry is not is damaged', async () => {
  const row = { ...GROUP, id: new Uint8Array(20), size: 10, sequence: 7 } as unknown as BlockRow;
  const store = {
    findBlock: () => row,
    readBlock: () => Promise.resolve(),
    readBlockEntry: () => Promise.reject(new WebdfsError('CORRUPT', 'head does not fit its checksum')),
  } as unknown as Store;
  const results = await verifyItems(store, [{ ...GROUP, type: 'block', id: row.id }], new AbortController().signal);
  assert.deepEqual(results, [{ state: 'damaged', sequence: 7, size: 10 }]);
});
