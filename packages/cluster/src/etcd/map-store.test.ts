import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { silentLog, systemClock, SystemRandom } from '@webdfs/base';
import { testMapStore } from '../conformance.ts';
import type { MapStore } from '../map-store.ts';
import { openEtcdMapStore } from './map-store.ts';
import { etcdMissing, RunningEtcd } from './testing.ts';

const missing = etcdMissing();
let etcd: RunningEtcd | undefined;
let clusters = 0;

before(async () => {
  if (missing === false) etcd = await RunningEtcd.start();
});
after(async () => {
  await etcd?.[Symbol.asyncDispose]();
});

function open(name: string): MapStore {
  const { address } = etcd!;
  return openEtcdMapStore({ address, name, clock: systemClock, random: new SystemRandom(), log: silentLog });
}

if (missing === false) {
  testMapStore('etcd', async () => {
    const name = `conformance-${++clusters}`;
    const stores = [open(name), open(name)] as const;
    return {
      store: stores[0],
      other: stores[1],
      pass: async (ms) => await pause(ms),
      async [Symbol.asyncDispose]() {
        for (const store of stores) await store[Symbol.asyncDispose]();
      },
    };
  });
} else {
  test('etcd: the promises of every house', { skip: missing });
}
