import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { etcdMissing, RunningEtcd } from '@webdfs/cluster/testing';
import type { TokenReport } from '@webdfs/webdfs';
import { JoinedCluster } from '../support/joined-cluster.ts';
import { RecordedLoad } from '../support/recorded-load.ts';
import { FLAGS, MAIN, runProgram } from '../support/running-cluster.ts';

/** What nodes prove themselves by, on real processes: a token that changes under a load, and certificates. */

async function token(...words: string[]): Promise<TokenReport & { token: string }> {
  const { code, stdout, stderr } = await runProgram(process.execPath, [
    ...FLAGS,
    MAIN,
    'cluster',
    'token',
    '--json',
    ...words,
  ]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as TokenReport & { token: string };
}

test(
  'the token is rotated under a load: no node restarts, one that was away comes back, the old one ends',
  {
    skip: etcdMissing(),
  },
  async (context) => {
    const random = new SeededRandom(seedOf(context));
    await using etcd = await RunningEtcd.start();
    await using cluster = await JoinedCluster.start(etcd, { arguments: ['--wire', 'tls'] });
    const before = await cluster.whole();
    await cluster.makeBucket('load');
    await using load = new RecordedLoad(cluster, 'load', random);
    load.start(4, 40, 20);
    await sleep(systemClock, 1_000);
    const data = ['--data', cluster.folderOf(0)];
    const old = cluster.token;
    const rotated = await token('rotate', ...data);
    assert.ok(rotated.token.startsWith('webdfs1.') && rotated.token !== old);
    assert.ok(rotated.nodes.every(({ name }) => name === rotated.name));
    const after = await cluster.whole();
    const pids = ({ nodes }: typeof before): unknown[] => nodes.map(({ id, pid }) => [id, pid]);
    assert.deepEqual(pids(after), pids(before), 'nobody was restarted');

    // away for a second rotation, which it may be: it is let in by the secret that it has
    await cluster.stopMachine(2);
    const second = await token('rotate', ...data, '--without', String(cluster.nodeOf(2)));
    await cluster.startMachine(2);
    await cluster.whole();
    const late = (await token('status', ...data)).nodes.find(({ node }) => node === cluster.nodeOf(2));
    assert.equal(late?.name, rotated.name, 'it has what it had');
    const third = await token('rotate', ...data);
    assert.ok(third.nodes.every(({ name }) => name === third.name) && third.name !== second.name);
    await token('end', ...data);
    await cluster.stopMachine(1);
    await cluster.startMachine(1);
    await cluster.whole();
    await load.stop();
    const verified = await load.verify();
    context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
    assert.deepEqual(load.violations, []);
  },
);

/** An authority, and a certificate for all nodes of the cluster `test`. */
async function certificatesIn(folder: string): Promise<string[]> {
  const run = (...words: string[]): unknown => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
  const key = ['-newkey', 'ed25519', '-nodes'];
  run('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=ca');
  run('req', ...key, '-keyout', 'node.key', '-out', 'node.csr', '-subj', '/CN=node');
  await writeFile(join(folder, 'names'), 'subjectAltName=URI:webdfs://test/node\n');
  const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names'];
  run('x509', '-req', '-in', 'node.csr', '-out', 'node.pem', ...signing);
  return ['--wire-ca', 'ca.pem', '--wire-cert', 'node.pem', '--wire-key', 'node.key'].map((word) =>
    word.startsWith('--') ? word : join(folder, word),
  );
}

const skip = etcdMissing() || (spawnSync('openssl', ['version']).error === undefined ? false : 'openssl is missing');

test('a cluster whose nodes prove themselves by certificates', { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-ca-'));
  await using _ = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  await using etcd = await RunningEtcd.start();
  await using cluster = await JoinedCluster.start(etcd, { arguments: await certificatesIn(folder) });
  await cluster.whole();
  await cluster.makeBucket('bucket');
  const source = new URL(import.meta.url).pathname;
  assert.equal((await cluster.webdfs(1, 'put', source, 's3://bucket/key')).code, 0);
  const where = await cluster.webdfs(2, 'where', 's3://bucket/key', '--json');
  assert.equal(where.code, 0, where.stdout + where.stderr);
});
