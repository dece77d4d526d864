import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@webdfs/base';
import { etcdMissing, RunningEtcd } from './testing.ts';
import { etcdVersion, mayEndLeasesEarly } from './version.ts';

test('versions that may end leases early are told apart from those that do not', () => {
  for (const version of ['3.4.23', '3.4.30', '3.5.0', '3.5.12', 'unknown'])
    assert.ok(mayEndLeasesEarly(version), version);
  for (const version of ['3.4.31', '3.5.13', '3.5.21', '3.6.0', '4.0.0'])
    assert.ok(!mayEndLeasesEarly(version), version);
  for (const version of ['3.3.27', '2.3.8']) assert.throws(() => mayEndLeasesEarly(version), { code: 'UNSUPPORTED' });
});

test('a server is asked for its version, and none is no failure', { skip: etcdMissing() }, async () => {
  await using etcd = await RunningEtcd.start();
  const { address } = etcd;
  assert.match((await etcdVersion({ address, clock: systemClock })) ?? '', /^3\.\d+\.\d+/);
  await etcd.kill(0);
  assert.equal(await etcdVersion({ address, clock: systemClock, timeoutMs: 300 }), undefined);
});
