import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { test } from 'node:test';
import { ManualClock, WebdfsError } from '@webdfs/base';
import { serveLocally } from '@webdfs/base/testing';
import { S3Client } from './s3-client.ts';

const PIECE = new Uint8Array(64 * 1024);

/** A server of HTTP and a client of it. */
async function serve(listener: RequestListener): Promise<{ client: S3Client } & AsyncDisposable> {
  const server = await serveLocally(listener);
  const client = new S3Client({
    endpoint: `http://${server.host}`,
    credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
    clock: new ManualClock(),
    connections: 1,
  });
  return {
    client,
    [Symbol.asyncDispose]: async () => {
      client[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('a body of many pieces waits for its reader each time, and leaves nothing behind it', async () => {
  let bytes = 0;
  await using served = await serve((request, response) => {
    request.on('data', (chunk: Uint8Array) => (bytes += chunk.length));
    request.on('end', () => response.end());
  });
  const warnings: Error[] = [];
  const warn = (warning: Error): number => warnings.push(warning);
  process.on('warning', warn);
  async function* body(): AsyncGenerator<Uint8Array> {
    for (let piece = 0; piece < 256; piece++) yield PIECE;
  }
  await served.client.call({ method: 'PUT', bucket: 'b', key: 'k', body: body(), size: 256 * PIECE.length });
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', warn);
  assert.equal(bytes, 256 * PIECE.length);
  assert.deepEqual(warnings, []);
});

test('a body whose connection is cut asks its source for no more', async () => {
  await using served = await serve((request) => request.once('data', () => request.socket.destroy()));
  const ended = Promise.withResolvers<void>();
  async function* body(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield PIECE;
    } finally {
      ended.resolve();
    }
  }
  const put = served.client.call({ method: 'PUT', bucket: 'b', key: 'k', body: body(), size: 2 ** 40 });
  await assert.rejects(put, (error) => error instanceof WebdfsError && error.code === 'UNAVAILABLE');
  await ended.promise;
});
