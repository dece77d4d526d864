import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { digestTree, makeTree, TREE_BYTES, TREE_FILES } from '../support/file-tree.ts';
import { mustRun, RunningCluster, runProgram } from '../support/running-cluster.ts';

/** The programs people already use, on a real file tree, against a cluster of three processes. */

let cluster: RunningCluster;
let scratch: string;
let tree: string;
let original: Map<string, string>;
let environment: Record<string, string>;

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'webdfs-clients-'));
  tree = join(scratch, 'tree');
  const made = await makeTree(tree);
  assert.ok(made.files >= TREE_FILES);
  assert.ok(made.bytes >= TREE_BYTES);
  original = await digestTree(tree);
  cluster = await RunningCluster.start();
  await writeFile(
    join(scratch, 'rclone.conf'),
    `[w]\ntype = s3\nprovider = Other\nendpoint = ${cluster.endpoint}\naccess_key_id = ${cluster.ready.accessKeyId}\nsecret_access_key = ${cluster.ready.secretAccessKey}\n`,
    { mode: 0o600 },
  );
  environment = {
    ...cluster.environment,
    HOME: scratch,
    RCLONE_CONFIG: join(scratch, 'rclone.conf'),
    AWS_ENDPOINT_URL: cluster.endpoint,
    RESTIC_PASSWORD: 'a password for the test only',
    RESTIC_CACHE_DIR: join(scratch, 'restic-cache'),
  };
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await rm(scratch, { recursive: true, force: true });
});

const aws = (...words: string[]): Promise<string> =>
  mustRun('/usr/bin/aws', ['--endpoint-url', cluster.endpoint, ...words], environment);

test('rclone copies a tree and finds every byte again, and a second sync moves nothing', async () => {
  await mustRun('rclone', ['copy', tree, 'w:rclone/tree', '--transfers', '8'], environment);
  await mustRun('rclone', ['check', '--download', tree, 'w:rclone/tree'], environment);
  await mustRun('rclone', ['sync', tree, 'w:rclone/tree'], environment);
  const again = await runProgram('rclone', ['sync', tree, 'w:rclone/tree', '-v', '--stats-one-line'], environment);
  assert.equal(again.code, 0, again.stderr);
  assert.match(again.stderr, /There was nothing to transfer|Transferred:\s+0 B|0 B \/ 0 B/);
});

test('s3cmd syncs a tree there and back', async () => {
  const host = cluster.endpoint.replace('http://', '');
  const words = [
    `--access_key=${cluster.ready.accessKeyId}`,
    `--secret_key=${cluster.ready.secretAccessKey}`,
    `--host=${host}`,
    `--host-bucket=${host}`,
    '--no-ssl',
    '--no-progress',
  ];
  await mustRun('s3cmd', [...words, 'mb', 's3://s3cmd'], environment);
  await mustRun('s3cmd', [...words, 'sync', `${tree}/`, 's3://s3cmd/tree/'], environment);
  const back = join(scratch, 's3cmd-back');
  await mkdir(back);
  await mustRun('s3cmd', [...words, 'sync', 's3://s3cmd/tree/', `${back}/`], environment);
  assert.deepEqual(await digestTree(back), original);
  await rm(back, { recursive: true });
});

test('aws s3 syncs a tree there and back', async () => {
  await aws('s3', 'mb', 's3://awscli');
  await aws('s3', 'sync', '--no-progress', '--only-show-errors', tree, 's3://awscli/tree');
  const back = join(scratch, 'aws-back');
  await aws('s3', 'sync', '--no-progress', '--only-show-errors', 's3://awscli/tree', back);
  assert.deepEqual(await digestTree(back), original);
  await rm(back, { recursive: true });
});

test('aws s3api uploads in parts, lists them, completes and reads a part back', async () => {
  await aws('s3api', 'create-bucket', '--bucket', 'parts');
  const file = join(scratch, 'part');
  const bytes = Buffer.alloc(6 * 1024 * 1024, 'webdfs ');
  await writeFile(file, bytes);
  const target = ['--bucket', 'parts', '--key', 'a//b/../c d'];
  const { UploadId } = JSON.parse(await aws('s3api', 'create-multipart-upload', ...target));
  const upload = [...target, '--upload-id', UploadId];
  const etags: string[] = [];
  for (const number of ['1', '2']) {
    const answer = await aws('s3api', 'upload-part', ...upload, '--part-number', number, '--body', file);
    etags.push(JSON.parse(answer).ETag);
  }
  const listed = JSON.parse(await aws('s3api', 'list-parts', ...upload));
  assert.deepEqual(
    listed.Parts.map((part: { ETag: string }) => part.ETag),
    etags,
  );
  const parts = JSON.stringify({ Parts: etags.map((ETag, index) => ({ ETag, PartNumber: index + 1 })) });
  const done = JSON.parse(await aws('s3api', 'complete-multipart-upload', ...upload, '--multipart-upload', parts));
  assert.match(done.ETag, /-2"$/);
  const back = join(scratch, 'part-back');
  await aws('s3api', 'get-object', ...target, '--range', `bytes=${bytes.length}-`, back);
  assert.deepEqual(await readFile(back), bytes);
});

test('restic backs up, checks every byte and restores the same tree', async () => {
  const repository = ['-r', `s3:${cluster.endpoint}/restic`];
  await mustRun('restic', [...repository, 'init'], environment);
  await mustRun('restic', [...repository, 'backup', 'tree'], environment, { cwd: scratch });
  await mustRun('restic', [...repository, 'check', '--read-data'], environment);
  const back = join(scratch, 'restic-back');
  await mustRun('restic', [...repository, 'restore', 'latest', '--target', back], environment);
  assert.deepEqual(await digestTree(join(back, 'tree')), original);
  await rm(back, { recursive: true });
});

test('s3fs mounts a bucket into which a tree is copied and compared', async (context) => {
  const probe = await runProgram('test', ['-c', '/dev/fuse']);
  if (probe.code !== 0) return context.skip('this machine has no /dev/fuse');
  await aws('s3', 'mb', 's3://mounted');
  const secret = join(scratch, 'passwd-s3fs');
  await writeFile(secret, `${cluster.ready.accessKeyId}:${cluster.ready.secretAccessKey}\n`, { mode: 0o600 });
  const mount = join(scratch, 'mount');
  await mkdir(mount);
  const options = `passwd_file=${secret},url=${cluster.endpoint},use_path_request_style`;
  await mustRun('s3fs', ['mounted', mount, '-o', options], environment);
  try {
    // a part of the tree: every file is several requests through the mount
    await mustRun(
      'sh',
      ['-c', `cd "$0" && find . -type f | sort | head -300 | xargs -d '\\n' cp --parents -t "$1"`, tree, mount],
      environment,
    );
    await mustRun('sh', [
      '-c',
      `cd "$0" && find . -type f | while read -r f; do cmp "$f" "$1/$f" || exit 1; done`,
      mount,
      tree,
    ]);
    await mustRun('sh', ['-c', 'test "$(find "$0" -type f | wc -l)" = 300', mount]);
  } finally {
    await mustRun('fusermount', ['-u', mount]);
  }
});

test('boto3 writes, reads, lists, copies and deletes', async () => {
  const script = `
import boto3, hashlib, os
from botocore.config import Config
s3 = boto3.client('s3', endpoint_url=os.environ['WEBDFS_ENDPOINT'], config=Config(retries={'max_attempts': 5}))
s3.create_bucket(Bucket='boto')
keys = ['a//b', '..', 'foo', 'foo/bar', 'd/', 'ümläut/日本語/\\U0001F600', 'sp ace+plus&amp;', "quote'\\"<>"]
for i, key in enumerate(keys):
    body = b'' if key == 'd/' else hashlib.sha256(key.encode()).digest() * (i + 1) * 1000
    s3.put_object(Bucket='boto', Key=key, Body=body, Metadata={'number': str(i)}, ContentType='text/x-test')
for i, key in enumerate(keys):
    body = b'' if key == 'd/' else hashlib.sha256(key.encode()).digest() * (i + 1) * 1000
    got = s3.get_object(Bucket='boto', Key=key)
    assert got['Body'].read() == body, key
    assert got['Metadata'] == {'number': str(i)} and got['ContentType'] == 'text/x-test'
pages = s3.get_paginator('list_objects_v2').paginate(Bucket='boto', PaginationConfig={'PageSize': 3})
listed = [o['Key'] for p in pages for o in p.get('Contents', [])]
assert listed == sorted(keys, key=lambda k: k.encode()), listed
top = s3.list_objects_v2(Bucket='boto', Delimiter='/')
assert [p['Prefix'] for p in top['CommonPrefixes']] == sorted(['a/', 'foo/', 'd/', 'ümläut/'], key=lambda k: k.encode())
s3.copy_object(Bucket='boto', Key='copy', CopySource={'Bucket': 'boto', 'Key': 'foo/bar'})
assert s3.get_object(Bucket='boto', Key='copy')['Body'].read() == s3.get_object(Bucket='boto', Key='foo/bar')['Body'].read()
gone = s3.delete_objects(Bucket='boto', Delete={'Objects': [{'Key': k} for k in keys + ['copy', 'never there']]})
assert len(gone['Deleted']) == len(keys) + 2 and 'Errors' not in gone
s3.delete_bucket(Bucket='boto')
print('fine')
`;
  const answer = await mustRun('/usr/bin/python3', ['-c', script], environment);
  assert.equal(answer.trim(), 'fine');
});
