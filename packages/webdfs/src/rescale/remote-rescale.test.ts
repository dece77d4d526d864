import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, ManualClock } from '@webdfs/base';
import { serveLocally } from '@webdfs/base/testing';
import { S3Client } from '../s3-client.ts';
import { TopologyWatch } from './remote-rescale.ts';

test('a topology is looked at until nobody has answered for a minute; what is refused ends it at once', async () => {
  const clock = new ManualClock();
  let status = 200;
  await using server = await serveLocally((_request, response) => response.writeHead(status).end('{"groups":4}'));
  const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' };
  using client = new S3Client({ endpoint: `http://${server.host}`, credentials, clock });
  const watch = new TopologyWatch(client, clock);
  const { signal } = new AbortController();
  for (const seconds of [50, 50]) {
    status = 503;
    clock.advance(seconds * 1_000);
    assert.equal(await watch.look(signal), undefined);
    status = 200;
    assert.equal((await watch.look(signal))?.groups, 4);
  }
  status = 503;
  clock.advance(61_000);
  await assert.rejects(watch.look(signal), (error) => codeOf(error) === 'UNAVAILABLE');
  status = 200;
  await watch.look(signal);
  status = 403;
  await assert.rejects(watch.look(signal), (error) => codeOf(error) === 'ACCESS_DENIED');
});
