import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { GetObjectCommand, HeadObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { Client } from 'minio';
import { RunningCluster } from '../support/running-cluster.ts';

/** The clients that Node.js programs use, at their newest versions and with their default checksums. */

let cluster: RunningCluster;

before(async () => {
  cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'made-at-start' } });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
});

function sdk(): S3Client {
  return new S3Client({
    endpoint: cluster.endpoint,
    region: 'eu-anything-7',
    forcePathStyle: true,
    credentials: { accessKeyId: cluster.ready.accessKeyId, secretAccessKey: cluster.ready.secretAccessKey },
  });
}

test('the AWS SDK puts with its default checksums and verifies what it gets', async () => {
  const client = sdk();
  const bytes = randomBytes(300_000);
  const target = { Bucket: 'made-at-start', Key: 'sdk/plain' };
  const put = await client.send(new PutObjectCommand({ ...target, Body: bytes, Metadata: { colour: 'blue' } }));
  assert.equal(put.ETag, `"${createHash('md5').update(bytes).digest('hex')}"`);
  const head = await client.send(new HeadObjectCommand({ ...target, ChecksumMode: 'ENABLED' }));
  assert.equal(head.ChecksumCRC32, put.ChecksumCRC32);
  const got = await client.send(new GetObjectCommand({ ...target, ChecksumMode: 'ENABLED' }));
  assert.deepEqual(Buffer.from(await got.Body!.transformToByteArray()), bytes);
  assert.deepEqual(got.Metadata, { colour: 'blue' });
  client.destroy();
});

test('the AWS SDK streams a body of unknown length', async () => {
  const client = sdk();
  const bytes = randomBytes(23 * 1024 * 1024);
  const body = Readable.from(
    (function* () {
      for (let offset = 0; offset < bytes.length; offset += 700_001) yield bytes.subarray(offset, offset + 700_001);
    })(),
  );
  const upload = new Upload({ client, params: { Bucket: 'made-at-start', Key: 'sdk/streamed', Body: body } });
  const done = await upload.done();
  assert.match(done.ETag ?? '', /-5"$/);
  const got = await client.send(new GetObjectCommand({ Bucket: 'made-at-start', Key: 'sdk/streamed' }));
  assert.deepEqual(Buffer.from(await got.Body!.transformToByteArray()), bytes);
  client.destroy();
});

test('the minio client puts, lists, gets by presigned address and removes', async () => {
  const url = new URL(cluster.endpoint);
  const client = new Client({
    endPoint: url.hostname,
    port: Number(url.port),
    useSSL: false,
    accessKey: cluster.ready.accessKeyId,
    secretKey: cluster.ready.secretAccessKey,
  });
  await client.makeBucket('minio-js');
  const large = randomBytes(70 * 1024 * 1024);
  await client.putObject('minio-js', 'large', Readable.from([large]));
  await client.putObject('minio-js', 'small', 'hello');
  assert.deepEqual(await buffer(await client.getObject('minio-js', 'large')), large);
  const names: string[] = [];
  for await (const item of client.listObjectsV2('minio-js', '', true)) names.push((item as { name: string }).name);
  assert.deepEqual(names, ['large', 'small']);
  const answer = await fetch(await client.presignedGetObject('minio-js', 'small', 60));
  assert.equal(await answer.text(), 'hello');
  await client.removeObjects('minio-js', names);
  await client.removeBucket('minio-js');
  assert.equal(await client.bucketExists('minio-js'), false);
});
