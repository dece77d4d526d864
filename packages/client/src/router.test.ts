import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, toHex, utf8, WebdfsError } from '@webdfs/base';
import { decodeWriteRequest, encodeReadAnswer } from '@webdfs/replica';

import { POLICY, Script, aWrite, WRITTEN, written, refusing, ONE, TWO } from './router-script.ts';

test('a write goes to the primary of its group and comes back with its version', async () => {
  const script = new Script();
  script.handlers.set(ONE, written);
  assert.deepEqual(await script.router().write(aWrite()), WRITTEN);
  assert.deepEqual(
    script.calls.map(({ node }) => node),
    [ONE],
  );
});

test('a refusal with a newer revision is followed by reading the map up to it, then by the new primary', async () => {
  const script = new Script();
  script.handlers.set(ONE, refusing('NOT_PRIMARY', { revision: 4 }));
  script.handlers.set(TWO, written);
  script.primaryOf = () => (script.revision < 4 ? ONE : TWO);
  assert.deepEqual(await script.router().write(aWrite()), WRITTEN);
  assert.deepEqual(script.readThroughs, [4]);
  assert.deepEqual(
    script.calls.map(({ node }) => node),
    [ONE, TWO],
  );
});

test('a retry has the same request id and a greater age', async () => {
  const script = new Script();
  let tries = 0;
  script.handlers.set(ONE, (message, verb) => {
    script.clock.advance(30);
    if (++tries < 4) throw new WebdfsError('PEER_LOST', 'scripted');
    return written(message, verb);
  });
  await script.router().write(aWrite());
  const arrived = script.calls.map(({ message }) => decodeWriteRequest(message).request);
  assert.deepEqual(new Set(arrived.map(({ requestId }) => toHex(requestId))).size, 1);
  const ages = arrived.map(({ ageMs }) => ageMs);
  assert.equal(ages[0], 100);
  assert.ok(
    ages.every((age, i) => i === 0 || age >= ages[i - 1]! + 30),
    ages.join(' '),
  );
});

test('what does not pass by itself is thrown as it came, after one try', async () => {
  for (const code of ['PRECONDITION_FAILED', 'CONFLICT', 'FENCED', 'DISK_FULL', 'INVALID', 'CORRUPT'] as const) {
    const script = new Script();
    script.handlers.set(ONE, refusing(code));
    await assert.rejects(script.router().write(aWrite()), { code });
    assert.equal(script.calls.length, 1, code);
  }
});

test('a group that stays out of reach ends in UNAVAILABLE after the time for retries, not before', async () => {
  for (const code of ['PEER_LOST', 'TIMEOUT', 'NO_QUORUM', 'NOT_SYNCED', 'BUSY', 'NOT_PRIMARY'] as const) {
    const script = new Script();
    script.handlers.set(ONE, refusing(code));
    const began = script.clock.now();
    await assert.rejects(script.router({ retryForMs: 300 }).write(aWrite()), { code: 'UNAVAILABLE' });
    const took = script.clock.now() - began;
    assert.ok(took >= 300 && took < 800, `${code}: ${took} ms`);
    assert.ok(script.calls.length >= 3 && script.calls.length < 100, `${code}: ${script.calls.length} tries`);
  }
});

test('a write that may have happened too long ago is not tried again: UNAVAILABLE', async () => {
  const script = new Script();
  script.handlers.set(ONE, refusing('TOO_LATE'));
  await assert.rejects(script.router().write(aWrite()), { code: 'UNAVAILABLE' });
  assert.equal(script.calls.length, 1);
});

test('without a primary the request waits for the map to name one', async () => {
  const script = new Script();
  script.primaryOf = () => undefined;
  script.handlers.set(TWO, written);
  const answer = script.router().write(aWrite());
  await new Promise(setImmediate);
  script.move(() => TWO);
  assert.deepEqual(await answer, WRITTEN);
});

test('a read of a key that is not there is undefined, not an error', async () => {
  const script = new Script();
  script.handlers.set(ONE, () => encodeReadAnswer(undefined));
  const read = { policy: POLICY, group: asGroupId(1), key: utf8('0000key'), entry: true };
  assert.equal(await script.router().read(read), undefined);
});

// ---- listing ----
