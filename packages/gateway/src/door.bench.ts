import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { asPolicyId, systemClock, SystemRandom, utf8 } from '@webdfs/base';
import { MemoryGroups, ObjectLayer, type ObjectStore } from '@webdfs/client';
import { openDoor } from './door.ts';
import { KeyRing } from './keys.ts';
import { payloadHash, signRequest } from './s3/signer.ts';

/**
 * CPU of the door per request, user and system, in a process of its own, beside a bare `node:http` in the same run:
 * `node --conditions=webdfs:source packages/gateway/src/door.bench.ts`. Eight connections, one request under way on each.
 */

const KEY = { accessKeyId: 'BENCHKEY', secretAccessKey: 'a secret for benchmarks' };
const CONNECTIONS = 8;
const ROUNDS = 3;
const SIZES = [4_096, 131_072, 1_048_576];

interface Case {
  readonly name: string;
  readonly server: 'bare' | 'door' | 'layer';
  readonly method: 'GET' | 'PUT';
}

const CASES: readonly Case[] = [
  { name: 'GET bare node:http', server: 'bare', method: 'GET' },
  { name: 'GET door, nothing behind', server: 'door', method: 'GET' },
  { name: 'GET door, objects in memory', server: 'layer', method: 'GET' },
  { name: 'PUT bare node:http', server: 'bare', method: 'PUT' },
  { name: 'PUT door, nothing behind', server: 'door', method: 'PUT' },
  { name: 'PUT door, objects in memory', server: 'layer', method: 'PUT' },
];

// ---- the server's side ----

async function bare(size: number): Promise<number> {
  const body = Buffer.alloc(size, 'x');
  const headers = ['Content-Type', 'binary/octet-stream', 'ETag', '"0"', 'Accept-Ranges', 'bytes'];
  const server = createServer({ noDelay: true }, (request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, [...headers, 'Content-Length', String(size)]);
      response.end(body);
      return;
    }
    request.on('data', () => undefined);
    request.on('end', () => {
      response.writeHead(200, [...headers, 'Content-Length', '0']);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** A store that costs nothing: what is left is the door. */
function nothing(size: number): Partial<ObjectStore> {
  const body = Buffer.alloc(size, 'x');
  const facts = { headers: { 'content-type': 'binary/octet-stream' }, user: {} };
  const info = { ...facts, bucket: 'bench', key: utf8('k'), size, etag: '0', modifiedMs: 0, parts: 0, version: '1' };
  return {
    get: (_bucket, _key, options) => {
      options?.check?.(info);
      return Promise.resolve({ info, offset: 0, length: size, body });
    },
    put: async (_bucket, _key, source, options) => {
      if (!(source instanceof Uint8Array)) for await (const _piece of source);
      options.verify?.(new Uint8Array(16), size);
      return { etag: '0', size, modifiedMs: 0 };
    },
  };
}

async function serve(server: Case['server'], size: number): Promise<number> {
  if (server === 'bare') return await bare(size);
  const clock = systemClock;
  const random = new SystemRandom();
  const groups = new MemoryGroups({ clock, maxBytes: 4 * 1024 ** 3 });
  const layer = new ObjectLayer({ groups, policy: asPolicyId(1), clock, random });
  const store = server === 'layer' ? layer : (nothing(size) as ObjectStore);
  if (server === 'layer') {
    await layer.createBucket('bench', { owner: KEY.accessKeyId });
    const facts = { headers: { 'content-type': 'binary/octet-stream' }, user: {} };
    await layer.put('bench', utf8('k'), Buffer.alloc(size, 'x'), { facts });
  }
  const keys = new KeyRing([KEY]);
  return (await openDoor({ store, keys, clock, random, host: '127.0.0.1', port: 0 })).port;
}

async function child(server: Case['server'], size: number): Promise<void> {
  const port = await serve(server, size);
  let begun = process.cpuUsage();
  process.on('message', (message) => {
    if (message === 'begin') begun = process.cpuUsage();
    const { user, system } = process.cpuUsage(begun);
    process.send?.({ cpu: user + system });
  });
  process.send?.({ port });
}

// ---- the client's side ----

function requestBytes({ method }: Case, port: number, size: number): Buffer {
  const body = method === 'PUT' ? Buffer.alloc(size, 'x') : Buffer.alloc(0);
  const host = `127.0.0.1:${port}`;
  const headers = signRequest({
    method,
    host,
    path: '/bench/k',
    headers: {
      'user-agent': 'webdfs-bench/1 (something as long as what the SDKs send with each request)',
      'amz-sdk-invocation-id': '00000000-0000-0000-0000-000000000000',
      'amz-sdk-request': 'attempt=1; max=3',
      ...(method === 'PUT' && { 'content-length': String(size), 'content-type': 'binary/octet-stream' }),
    },
    payloadHash: method === 'PUT' && size > 4_096 ? 'UNSIGNED-PAYLOAD' : payloadHash(body),
    credentials: KEY,
    region: 'us-east-1',
    nowMs: systemClock.now(),
  });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} /bench/k HTTP/1.1\r\n${lines.join('')}accept: */*\r\n\r\n`), body]);
}

/** Sends the same request over and over on one connection; the answers' length is learned from the first. */
function load(port: number, request: Buffer, count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let left = count;
    let length = 0;
    let received = 0;
    socket.setNoDelay(true);
    socket.on('error', reject);
    socket.on('connect', () => socket.write(request));
    socket.on('data', (chunk) => {
      received += chunk.length;
      if (length === 0) {
        const head = chunk.toString('latin1').split('\r\n\r\n')[0]!;
        if (!head.startsWith('HTTP/1.1 200')) return reject(new Error(chunk.toString()));
        length = head.length + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1]);
      }
      if (received < length) return;
      received -= length;
      left -= 1;
      if (left > 0) return void socket.write(request);
      socket.destroy();
      resolve();
    });
  });
}

async function measure(what: Case, size: number): Promise<number> {
  const server = fork(import.meta.filename, ['serve', what.server, String(size)]);
  const told = (): Promise<{ port?: number; cpu?: number }> =>
    new Promise((resolve) => server.once('message', resolve));
  try {
    const { port } = await told();
    const request = requestBytes(what, port!, size);
    // replaced blocks stay in memory: no more of them than it holds
    const count = Math.ceil((size > 1_000_000 ? 160 : 4_000) / CONNECTIONS);
    const run = (): Promise<unknown> =>
      Promise.all(Array.from({ length: CONNECTIONS }, () => load(port!, request, count)));
    await run();
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      server.send('begin');
      await told();
      await run();
      server.send('end');
      times.push((await told()).cpu! / (count * CONNECTIONS));
    }
    return Math.min(...times);
  } finally {
    server.kill();
  }
}

const [, , mode, server, size] = process.argv;
if (mode === 'serve') await child(server as Case['server'], Number(size));
else {
  console.log('CPU of the server per request, microseconds (least of 3 rounds), and its ratio to bare node:http');
  console.log(`${''.padEnd(30)}${SIZES.map((it) => `${it / 1_024} KiB`.padStart(18)).join('')}`);
  const baseline = new Map<string, number>();
  for (const what of CASES) {
    const cells: string[] = [];
    for (const bytes of SIZES) {
      const micros = await measure(what, bytes);
      const name = `${what.method} ${bytes}`;
      if (what.server === 'bare') baseline.set(name, micros);
      cells.push(`${micros.toFixed(1)} (${(micros / baseline.get(name)!).toFixed(2)})`.padStart(18));
    }
    console.log(what.name.padEnd(30) + cells.join(''));
  }
}
