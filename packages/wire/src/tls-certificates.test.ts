import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { asNodeId, silentLog, sleep, systemClock, SystemRandom } from '@webdfs/base';
import type { NodeTransport } from './node-transport.ts';
import { openTcpTransport, type TcpTransportOptions } from './tcp-transport.ts';
import { type Certificates, nodeUri } from './tls-certificates.ts';
import type { Handlers } from './transport.ts';

const random = new SystemRandom();
const CLUSTER = 'ab'.repeat(16);
const HANDLERS: Handlers = {
  call: (_verb, message) => message,
  post: () => undefined,
  receive: (_verb, message) => Promise.resolve(message),
  serve: (_verb, message) => Promise.resolve(message),
};
const skip = spawnSync('openssl', ['version']).error === undefined ? false : 'openssl is not installed';

async function open(self: number, options: Partial<TcpTransportOptions>): Promise<NodeTransport> {
  return await openTcpTransport({
    self: asNodeId(self),
    cluster: CLUSTER,
    secret: new Uint8Array(32),
    host: '127.0.0.1',
    port: 0,
    handlers: HANDLERS,
    clock: systemClock,
    random,
    log: silentLog,
    limits: { firstRetryMs: 5, lastRetryMs: 20 },
    ...options,
  });
}

function meet(a: NodeTransport, b: NodeTransport): void {
  a.setPeers(new Map([[b.self, b.address]]));
  b.setPeers(new Map([[a.self, a.address]]));
}

async function haveMet(a: NodeTransport, b: NodeTransport): Promise<void> {
  while (!a.alive(b.self) || !b.alive(a.self)) await sleep(systemClock, 2);
}

/** An authority for a test, and what it signs. */
class Authority implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'webdfs-ca-'));

  constructor() {
    this.#run('req', '-x509', '-newkey', 'ed25519', '-nodes', '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=ca');
  }

  #run(...words: string[]): void {
    execFileSync('openssl', words, { cwd: this.#folder, stdio: 'pipe' });
  }

  #read(name: string): string {
    return readFileSync(join(this.#folder, name), 'utf8');
  }

  /** A certificate that names `uri`, for a node of the cluster called `clusterName`. */
  sign(uri: string, clusterName = 'home'): Certificates {
    writeFileSync(join(this.#folder, 'names'), `subjectAltName=URI:${uri}\n`);
    this.#run('req', '-newkey', 'ed25519', '-nodes', '-keyout', 'node.key', '-out', 'node.csr', '-subj', '/CN=node');
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names'];
    this.#run('x509', '-req', '-in', 'node.csr', '-out', 'node.pem', ...signing);
    return { ca: this.#read('ca.pem'), cert: this.#read('node.pem'), key: this.#read('node.key'), clusterName };
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

test('nodes with certificates of their cluster speak to each other, whatever secret each has', { skip }, async () => {
  using authority = new Authority();
  const certificates = authority.sign(nodeUri('home'));
  await using a = await open(1, { certificates, secret: random.bytes(32) });
  await using b = await open(2, { certificates: authority.sign(nodeUri('home')), secret: random.bytes(32) });
  meet(a, b);
  await haveMet(a, b);
  const message = { head: Uint8Array.of(1, 2, 3), attached: [] };
  const answer = await b.link(a.self).call(1, message, { deadlineMs: 5_000 });
  assert.deepEqual([...answer.head], [1, 2, 3]);
});

/** A stranger is let in by nobody and lets nobody in. */
async function isRefused(authority: Authority, stranger: Partial<TcpTransportOptions>): Promise<void> {
  const ours = authority.sign(nodeUri('home'));
  // the lower number dials: the stranger is refused on both sides
  for (const [first, second] of [
    [{ certificates: ours }, stranger],
    [stranger, { certificates: ours }],
  ] as const) {
    await using a = await open(1, first);
    await using b = await open(2, second);
    await using c = await open(3, { certificates: ours });
    const [friend, other] = first === stranger ? [b, a] : [a, b];
    meet(a, b);
    // what is shown by another who is let in is no matter of time
    friend.setPeers(new Map([other, c].map((node) => [node.self, node.address])));
    c.setPeers(new Map([[friend.self, friend.address]]));
    await haveMet(friend, c);
    assert.ok(!a.alive(b.self) && !b.alive(a.self));
  }
}

test(
  'a certificate of another cluster, another role, another authority, or none, lets nobody in',
  { skip },
  async () => {
    using authority = new Authority();
    using other = new Authority();
    await isRefused(authority, { certificates: authority.sign(nodeUri('elsewhere'), 'elsewhere') });
    await isRefused(authority, { certificates: authority.sign('webdfs://home/client') });
    await isRefused(authority, { certificates: { ...other.sign(nodeUri('home')), ca: authority.sign('a:b').ca } });
    await isRefused(authority, { tls: true });
    await isRefused(authority, {});
  },
);

test('a certificate without its key is told at the start', { skip }, async () => {
  using authority = new Authority();
  const [one, two] = [authority.sign(nodeUri('home')), authority.sign(nodeUri('home'))];
  await assert.rejects(open(1, { certificates: { ...one, key: two.key } }), { code: 'BAD_CONFIG' });
});

for (const tls of [false, true]) {
  const kind = tls ? 'under TLS' : 'plain';

  test(`${kind}: a secret is changed while links stand, and later links are made by the new one alone`, async () => {
    const [old, next] = [random.bytes(32), random.bytes(32)];
    await using a = await open(1, { tls, secret: old });
    await using b = await open(2, { tls, secret: old });
    meet(a, b);
    await haveMet(a, b);
    const changes: boolean[] = [];
    a.onChange((_node, alive) => changes.push(alive));
    for (const node of [a, b]) node.setSecrets([old, next]);
    for (const node of [a, b]) node.setSecrets([next, old]);
    for (const node of [a, b]) node.setSecrets([next]);
    const message = { head: Uint8Array.of(1), attached: [] };
    await a.link(b.self).call(1, message, { deadlineMs: 5_000 });
    assert.deepEqual(changes, [], 'no link went down');
    await using late = await open(3, { tls, secret: next });
    meet(a, late);
    await haveMet(a, late);
    await using stale = await open(4, { tls, secret: old });
    b.setPeers(new Map([stale, late].map((node) => [node.self, node.address])));
    stale.setPeers(new Map([[b.self, b.address]]));
    late.setPeers(new Map([[b.self, b.address]]));
    await haveMet(b, late);
    assert.ok(!b.alive(stale.self), 'the old secret opens nothing any more');
  });

  test(`${kind}: a node that was away while the secret was changed is let in as long as the old one is accepted`, async () => {
    const [old, next] = [random.bytes(32), random.bytes(32)];
    for (const [low, high] of [
      [[old], [next, old]],
      [[next, old], [old]],
    ] as const) {
      await using a = await open(1, { tls, secret: low[0]!, otherSecrets: low.slice(1) });
      await using b = await open(2, { tls, secret: high[0]!, otherSecrets: high.slice(1) });
      meet(a, b);
      await haveMet(a, b);
    }
  });
}
