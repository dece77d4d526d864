import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { test } from 'node:test';
import { SeededRandom } from '@webdfs/base';
import { serveLocally } from '@webdfs/base/testing';
import { EXIT } from '../command.ts';
import { runProgram } from '../program.ts';
import { check } from './check.ts';

/** Decides for one request what goes wrong with it. */
type Trouble = (request: IncomingMessage) => 'lost' | 'unavailable' | 'stale' | undefined;

function etagOf(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('hex');
}

/** A store of S3 in memory, as far as `check` asks for one. */
async function aStore(trouble: Trouble): Promise<{ endpoint: string } & AsyncDisposable> {
  const held = new Map<string, Buffer>();
  const before = new Map<string, Buffer | undefined>();
  const put = (key: string, bytes: Buffer, headers: IncomingMessage['headers'], fate: ReturnType<Trouble>): number => {
    const now = held.get(key);
    if (headers['if-none-match'] === '*' && now !== undefined) return 412;
    const expected = headers['if-match'];
    if (expected !== undefined && (now === undefined || `"${etagOf(now)}"` !== expected)) return 412;
    if (fate !== 'lost') {
      before.set(key, now);
      held.set(key, bytes);
    }
    return 200;
  };
  const server = await serveLocally((request, response) => {
    void (async () => {
      const url = new URL(request.url!, 'http://store');
      const [, , ...rest] = url.pathname.split('/');
      const key = rest.join('/');
      const bytes = await buffer(request);
      const fate = key === '' ? undefined : trouble(request);
      const give = (status: number, body?: Buffer): void => {
        response.writeHead(status, body === undefined ? {} : { etag: `"${etagOf(body)}"` });
        response.end(status === 200 && request.method === 'GET' ? body : undefined);
      };
      if (fate === 'unavailable') return give(503);
      if (key === '' && request.method === 'GET') {
        const rows = [...held].map(
          ([name, value]) => `<Contents><Key>${name}</Key><ETag>"${etagOf(value)}"</ETag></Contents>`,
        );
        return response.end(`<ListBucketResult>${rows.join('')}</ListBucketResult>`);
      }
      if (key === '') return give(200);
      if (request.method === 'PUT') return give(put(key, bytes, request.headers, fate), bytes);
      if (request.method === 'DELETE') return give(held.delete(key) ? 200 : 204);
      const found = fate === 'stale' && before.has(key) ? before.get(key) : held.get(key);
      return give(found === undefined ? 404 : 200, found);
    })();
  });
  return { ...server, endpoint: `http://${server.host}` };
}

async function run(words: readonly string[]): Promise<{ code: number; output: string; errors: string }> {
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const environment = {
    ...process.env,
    WEBDFS_ACCESS_KEY_ID: 'a-key-id',
    WEBDFS_SECRET_ACCESS_KEY: 'a secret of some length',
  };
  const terminal = { input: new PassThrough(), output, errors, environment, signal: new AbortController().signal };
  const shown = [text(output), text(errors)] as const;
  const code = await runProgram([check], ['check', ...words], terminal, '1');
  output.end();
  errors.end();
  return { code, output: await shown[0], errors: await shown[1] };
}

const BRIEF = ['--seconds', '1', '--keys', '4', '--think-ms', '2', '--seed', '7'];

test('a sound store that is unavailable now and then is linearizable', async () => {
  const random = new SeededRandom(1);
  await using store = await aStore(() => (random.below(20) === 0 ? 'unavailable' : undefined));
  const { code, output } = await run(['--endpoint', store.endpoint, ...BRIEF, '--json']);
  const report = JSON.parse(output);
  assert.equal(report.verdict, 'linearizable', output);
  assert.equal(code, EXIT.OK);
  assert.ok(report.operations > 20 && report.errors['UNAVAILABLE'] > 0, output);
});

test('a store that loses a write it acknowledged is refuted by the shortest history that shows it', async () => {
  const random = new SeededRandom(1);
  await using store = await aStore((request) =>
    request.method === 'PUT' && random.below(5) === 0 ? 'lost' : undefined,
  );
  const { code, output } = await run(['--endpoint', store.endpoint, ...BRIEF]);
  assert.equal(code, EXIT.FAILED, output);
  assert.match(output, /no order explains what was told of key-00\d/);
  assert.match(output, /client \d+ {2}\[.* ms, .* ms\] {2}write v\d+/);
  assert.match(output, /NOT LINEARIZABLE\n$/);
});

test('a store that shows an older object is refuted', async () => {
  const random = new SeededRandom(1);
  await using store = await aStore((request) =>
    request.method === 'GET' && random.below(8) === 0 ? 'stale' : undefined,
  );
  const { code } = await run(['--endpoint', store.endpoint, ...BRIEF]);
  assert.equal(code, EXIT.FAILED);
});

test('the fault command is run again and again, and is told which run it is', async () => {
  await using store = await aStore(() => undefined);
  const words = ['--fault-command', 'echo round $WEBDFS_CHECK_ROUND; exit 3', '--fault-every', '0', '--json'];
  const { code, output, errors } = await run(['--endpoint', store.endpoint, ...BRIEF, ...words]);
  assert.equal(code, EXIT.OK, output);
  const { faults } = JSON.parse(output);
  assert.ok(faults.length >= 2, output);
  assert.ok(faults.every(({ exitCode }: { exitCode: number }) => exitCode === 3));
  assert.match(errors, /fault: round 1\nfault: round 2\n/);
});

test('an endpoint that is no address ends the check', async () => {
  await using store = await aStore(() => undefined);
  const { code, errors } = await run(['--endpoint', `${store.endpoint}x`, ...BRIEF]);
  assert.notEqual(code, EXIT.OK);
  assert.match(errors, /endpoint/);
});
