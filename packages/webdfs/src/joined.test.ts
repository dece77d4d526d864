import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { NodeDisk, replaceWhole, silentLog, systemClock, SystemRandom, utf8 } from '@webdfs/base';
import { newSecrets, readSecrets, saveSecrets } from './credentials.ts';
import { type JoinOptions, replaceToken, startJoined } from './joined.ts';
import { tokenOf } from './token.ts';

const disk = new NodeDisk();
const IDENTITY = { format: 1, storeId: 'a'.repeat(32), node: 1, cluster: 'b'.repeat(32) };

/** A start that is told to stop before it waits for its process, which ends at once. */
async function start(folder: string, token: string | undefined): Promise<unknown> {
  const options: JoinOptions = {
    folder,
    token,
    host: '127.0.0.1',
    port: 1,
    advertise: undefined,
    command: [process.execPath, '--eval', ''],
    environment: {},
    disk,
    clock: systemClock,
    log: silentLog,
    signal: AbortSignal.abort(),
  };
  return await startJoined(options);
}

test('a token is kept at the first start, needed no more, and no other takes its place once there is data', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-joined-'));
  await using _ = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  const [first, second] = [newSecrets(new SystemRandom()), newSecrets(new SystemRandom())];
  await assert.rejects(start(folder, undefined), { code: 'BAD_CONFIG' });
  await assert.rejects(start(folder, tokenOf(first)), { code: 'CANCELLED' });
  assert.deepEqual(await readSecrets(disk, folder), first);
  await assert.rejects(start(folder, undefined), { code: 'CANCELLED' });

  // without data a mistake can still be mended
  await assert.rejects(start(folder, tokenOf(second)), { code: 'CANCELLED' });
  assert.deepEqual(await readSecrets(disk, folder), second);
  await disk.makeFolder(`${folder}/volumes`);
  await replaceWhole(disk, folder, 'identity', utf8(JSON.stringify(IDENTITY)));
  await assert.rejects(start(folder, tokenOf(first)), { code: 'BAD_CONFIG' });
  assert.deepEqual(await readSecrets(disk, folder), second);

  // keys that were changed here stay
  const changed = { ...second, secretAccessKey: 'changed-by-hand' };
  await saveSecrets(disk, folder, changed);
  await assert.rejects(start(folder, tokenOf(second)), { code: 'CANCELLED' });
  assert.deepEqual(await readSecrets(disk, folder), changed);
});

test('a token from before a rotation, or the one that a folder is given anew, starts its node', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-joined-'));
  await using _ = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  const [before, after] = [newSecrets(new SystemRandom()), newSecrets(new SystemRandom())];
  await saveSecrets(disk, folder, before);
  await disk.makeFolder(`${folder}/volumes`);
  await replaceWhole(disk, folder, 'identity', utf8(JSON.stringify(IDENTITY)));
  await replaceToken(disk, folder, tokenOf(after));
  const kept = await readSecrets(disk, folder);
  assert.equal(kept.clusterSecret, after.clusterSecret);
  assert.equal(kept.secretAccessKey, before.secretAccessKey, 'the keys of S3 stay');
  await assert.rejects(start(folder, tokenOf(before)), { code: 'CANCELLED' });
  await assert.rejects(start(folder, tokenOf(after)), { code: 'CANCELLED' });
  assert.deepEqual(await readSecrets(disk, folder), kept);
});
