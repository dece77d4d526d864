import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asNodeId, ManualClock, type NodeId, SeededRandom, silentLog } from '@webdfs/base';
import { createCluster, FIRST_POLICY } from './create-cluster.ts';
import { formatDocument } from './documents.ts';
import { diskKey, downKey, liveKey } from './keys.ts';
import { followMap } from './local-map.ts';
import { usageOf } from './map-usage.ts';
import type { Write } from './map-store.ts';
import { MemoryMapStore } from './memory-map-store.ts';
import { propose, together } from './propose.ts';

const NODES = 100;
const PREFIX = '/webdfs/production/';

/** 100 nodes in ten racks, 16 384 groups, every node registered. */
async function large(clock: ManualClock): Promise<MemoryMapStore> {
  const store = new MemoryMapStore(clock);
  const ids = Array.from({ length: NODES }, (_, i) => asNodeId(i + 1));
  await createCluster(store, {
    name: 'production',
    nodes: ids.map((id) => ({
      id,
      address: `storage-${id}.example.org:9001`,
      labels: { machine: `storage-${id}`, rack: `rack-${id % 10}`, zone: `zone-${(id % 10) % 3}` },
    })),
    domain: 'machine',
    groupBits: 14,
    random: new SeededRandom(1),
  });
  const lease = await store.lease(3_600_000);
  const writes = (id: NodeId): Write[] => [
    { type: 'put', key: diskKey(id), value: formatDocument({ id: 'd'.repeat(32), founding: true }) },
    {
      type: 'put',
      key: liveKey(id),
      value: formatDocument({
        pid: 100_000 + id,
        startedMs: 1_800_000_000_000,
        door: `storage-${id}.example.org:9000`,
        process: { pid: 100_000 + id, start: '123456789', boot: '12345678-1234-1234-1234-123456789012' },
      }),
      lease: lease.id,
    },
  ];
  for (const id of ids) await store.transact({ compare: [], write: writes(id) });
  return store;
}

test('100 nodes with 16 384 healthy groups stay under 1 MiB, and a node under 600 bytes', async (t) => {
  const store = await large(new ManualClock());
  const usage = usageOf(await store.read(), PREFIX.length);
  t.diagnostic(JSON.stringify(usage));
  assert.ok(usage.bytes < 1024 * 1024, `${usage.bytes} bytes`);
  assert.ok(usage.bytesPerNode < 600, `${usage.bytesPerNode} bytes a node`);
  assert.equal(usage.groups.keys, 0);
});

test('a lost node costs one key, and each group that takes it back one of under 120 bytes until it is swept', async (t) => {
  const clock = new ManualClock();
  const store = await large(clock);
  const before = usageOf(await store.read(), PREFIX.length);
  const lost = asNodeId(42);
  await store.transact({
    compare: [],
    write: [{ type: 'put', key: downKey(lost), value: formatDocument({ reason: 'lost', session: 0 }) }],
  });
  const marked = usageOf(await store.read(), PREFIX.length);
  assert.ok(marked.bytes - before.bytes < 80, `${marked.bytes - before.bytes} bytes`);

  await using map = await followMap(store, clock, silentLog);
  const learners = [{ node: lost, session: map.view.live(lost)!.session }];
  const proposals = [];
  for (let number = 0; number < 2 ** map.view.map.groupBits; number++) {
    const key = { policy: FIRST_POLICY, group: asGroupId(number) };
    if (!map.view.group(key).goal.includes(lost)) continue;
    proposals.push(propose(map.view, key, { type: 'join', learners }));
  }
  for (const { transaction } of together(proposals)) assert.ok((await store.transact(transaction)).done);
  const degraded = usageOf(await store.read(), PREFIX.length);
  t.diagnostic(JSON.stringify(degraded));
  assert.equal(degraded.groups.keys, proposals.length);
  assert.ok(degraded.bytesPerGroup < 120, `${degraded.bytesPerGroup} bytes a group`);
  assert.ok(degraded.bytes < 1024 * 1024, `${degraded.bytes} bytes`);
});
