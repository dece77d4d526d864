import { createHmac, hash } from 'node:crypto';
import { systemClock } from '@webdfs/base';
import { readHeaders } from '../http/headers.ts';
import { Query } from '../http/query.ts';
import { KeyRing } from '../keys.ts';
import { authenticate } from './authenticate.ts';
import { signRequest } from './signer.ts';
import { SigningKeys } from './signing-keys.ts';

/**
 * What a signature costs to verify, beside the hashes that it cannot do without:
 * `node --conditions=webdfs:source packages/gateway/src/s3/sigv4.bench.ts`.
 */

const KEY = { accessKeyId: 'BENCHKEY', secretAccessKey: 'a secret for benchmarks' };
const nowMs = systemClock.now();
const headers = signRequest({
  method: 'GET',
  host: '127.0.0.1:9000',
  path: '/bench/some/key',
  headers: { 'amz-sdk-invocation-id': '00000000-0000-0000-0000-000000000000', 'amz-sdk-request': 'attempt=1; max=3' },
  credentials: KEY,
  region: 'us-east-1',
  nowMs,
});
const raw = Object.entries({ ...headers, 'user-agent': 'webdfs-bench/1', accept: '*/*' }).flat();
const keys = new KeyRing([KEY]);
const signingKeys = new SigningKeys();
const map = readHeaders(raw);
const request = { method: 'GET', path: '/bench/some/key', query: Query.NONE, headers: map, host: headers['host']! };
const canonical = 'x'.repeat(400);
const key = hash('sha256', 'key', 'buffer');

const CASES: Record<string, () => unknown> = {
  'one SHA-256 of 400 bytes and one HMAC (the floor)': () =>
    createHmac('sha256', key)
      .update(hash('sha256', canonical, 'hex'))
      .digest('hex'),
  'the walk over the headers': () => readHeaders(raw),
  'a signature verified, headers walked': () => authenticate(request, { keys, signingKeys, nowMs }),
  '… with a new signing key': () => authenticate(request, { keys, signingKeys: new SigningKeys(), nowMs }),
};

for (const [name, act] of Object.entries(CASES)) {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const count = 50_000;
    const begun = process.cpuUsage();
    for (let i = 0; i < count; i++) act();
    times.push(process.cpuUsage(begun).user / count);
  }
  console.log(
    `${Math.min(...times)
      .toFixed(2)
      .padStart(8)} µs  ${name}`,
  );
}
