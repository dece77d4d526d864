import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asPolicyId } from '@webdfs/base';
import { type GroupsHouse, testGroups } from './groups-conformance.ts';
import { MemoryGroups } from './memory-groups.ts';

const policy = asPolicyId(1);

testGroups('memory', async (): Promise<GroupsHouse> => {
  const groups = new MemoryGroups();
  return await Promise.resolve({ groups, policy, [Symbol.asyncDispose]: () => Promise.resolve() });
});

test('memory is bounded: what does not fit is refused, and room returns when blocks are given up', async () => {
  const groups = new MemoryGroups({ maxBytes: 1_000 });
  const header = { key: Uint8Array.of(0, 0, 0, 1, 65), uploadId: new Uint8Array(16) };
  const first = groups.putBlock(policy, new Uint8Array(20), header);
  void first.write(new Uint8Array(900));
  const second = groups.putBlock(policy, new Uint8Array(20).fill(1), header);
  assert.throws(() => second.write(new Uint8Array(200)), { code: 'DISK_FULL' });
  first.abort();
  assert.equal(groups.bytes, 0);
  await second.write(new Uint8Array(200));
  assert.equal((await second.finish()).size, 200);
});
