import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { WebdfsError } from '@webdfs/base';
import { bearerTokenOf, KeyRing, MAX_KEYS } from './keys.ts';

const KEY = { accessKeyId: 'AKEXAMPLE', secretAccessKey: 'a secret of some length' };

test('a token opens as the key that it was made from, and changes with the secret', () => {
  const ring = new KeyRing([KEY, { accessKeyId: 'OTHER', secretAccessKey: 'another secret' }]);
  const token = bearerTokenOf(KEY);
  assert.equal(ring.bearer(token), 'AKEXAMPLE');
  assert.equal(ring.bearer(`${token}x`), undefined);
  assert.equal(ring.bearer(''), undefined);
  ring.set({ ...KEY, secretAccessKey: 'a new secret' });
  assert.equal(ring.bearer(token), undefined);
  ring.delete('AKEXAMPLE');
  assert.equal(ring.secret('AKEXAMPLE'), undefined);
  assert.equal(ring.size, 1);
});

test('a ring shows no secret, however it is printed', () => {
  const ring = new KeyRing([KEY]);
  for (const shown of [inspect(ring, { depth: 9, showHidden: true }), JSON.stringify({ ring })]) {
    assert.ok(!shown.includes('secret of some'), shown);
  }
});

test('keys that no client could send are refused, and so is one too many', () => {
  const invalid = (error: unknown): boolean => error instanceof WebdfsError && error.code === 'INVALID';
  for (const accessKeyId of ['', 'a', 'a/b', 'a b', 'a'.repeat(129)]) {
    assert.throws(() => new KeyRing([{ ...KEY, accessKeyId }]), invalid, accessKeyId);
  }
  assert.throws(() => new KeyRing([{ ...KEY, secretAccessKey: 'short' }]), invalid);
  const ring = new KeyRing(Array.from({ length: MAX_KEYS }, (_, i) => ({ ...KEY, accessKeyId: `key${i}` })));
  assert.throws(
    () => ring.set(KEY),
    (error) => error instanceof WebdfsError && error.code === 'TOO_LARGE',
  );
});
