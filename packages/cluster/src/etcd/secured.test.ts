import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog, systemClock, SystemRandom } from '@webdfs/base';
import type { MapStore } from '../map-store.ts';
import type { EtcdAddress } from './address.ts';
import { EtcdClient, type EtcdTls } from './client.ts';
import { openEtcdMapStore } from './map-store.ts';
import { rangeOf } from './requests.ts';
import { etcdMissing, RunningEtcd } from './testing.ts';

const skip = etcdMissing();

function open(address: EtcdAddress, tls: EtcdTls, name = 'secured'): MapStore {
  return openEtcdMapStore({ address, tls, name, clock: systemClock, random: new SystemRandom(), log: silentLog });
}

const WRITE = { compare: [], write: [{ type: 'put', key: 'map', value: 'x' }] } as const;

/** Users as an operator would make them: one who may do everything, and one for the keys of a cluster. */
async function withUsers(address: EtcdAddress, tls: EtcdTls): Promise<void> {
  using client = new EtcdClient({ address, tls, clock: systemClock });
  const call = async (path: string, body: Record<string, unknown>): Promise<void> => {
    await client.call(path, body, { repeatable: false });
  };
  await call('auth/user/add', { name: 'root', password: 'root' });
  await call('auth/role/add', { name: 'root' });
  await call('auth/user/grant', { user: 'root', role: 'root' });
  await call('auth/role/add', { name: 'secured' });
  await call('auth/role/grant', {
    name: 'secured',
    perm: { permType: 'READWRITE', ...rangeOf('/webdfs/secured/') },
  });
  await call('auth/user/add', { name: 'nodes', password: 'p:/w d' });
  await call('auth/user/grant', { user: 'nodes', role: 'secured' });
  await call('auth/enable', {});
}

test('etcd behind TLS, with a user: everything works with both, and nothing without either', { skip }, async () => {
  await using etcd = await RunningEtcd.start({ tls: true });
  const tls = { ca: await etcd.certificate(0) };
  const { address } = etcd;
  await withUsers(address, tls);

  const named = { ...address, user: 'nodes', password: 'p:/w d' };
  await using store = open(named, tls);
  const { revision } = await store.transact(WRITE);
  const lease = await store.lease(5_000);
  const stop = new AbortController();
  const watched = (async () => {
    for await (const change of store.watch(revision, stop.signal)) return change;
    return undefined;
  })();
  await store.transact({ compare: [], write: [{ type: 'put', key: 'live/1', value: 'y', lease: lease.id }] });
  await lease.renew();
  assert.equal((await watched)?.changes[0]?.entry?.value, 'y');
  await lease.end();
  assert.deepEqual(
    (await store.read()).entries.map(({ key }) => key),
    ['map'],
  );

  await using stranger = open(address, tls);
  await assert.rejects(stranger.transact(WRITE), { code: 'ACCESS_DENIED' });
  await using wrong = open({ ...named, password: 'guessed' }, tls);
  await assert.rejects(wrong.read(), { code: 'ACCESS_DENIED' });
  await using elsewhere = open(named, tls, 'another');
  await assert.rejects(elsewhere.transact(WRITE), { code: 'ACCESS_DENIED' });
  await using unsure = open(named, {});
  await assert.rejects(unsure.read(), { code: 'UNAVAILABLE' });
  await using plain = open({ ...named, tls: false }, {});
  await assert.rejects(plain.read());
});
