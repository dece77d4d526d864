import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageOf, SystemRandom } from '@webdfs/base';
import { newSecrets } from './credentials.ts';
import { secretName, secretsOf, tokenOf } from './token.ts';

test('a token brings the secrets over, white space around it or not', () => {
  const secrets = newSecrets(new SystemRandom());
  assert.deepEqual(secretsOf(`  ${tokenOf(secrets)}\n`), secrets);
});

test('a token that was cut anywhere is refused, and not repeated', () => {
  const token = tokenOf(newSecrets(new SystemRandom()));
  for (let length = 0; length < token.length; length++) {
    assert.throws(
      () => secretsOf(token.slice(0, length)),
      (error) => {
        assert.equal((error as { code?: string }).code, 'BAD_CONFIG');
        return length < 12 || !messageOf(error).includes(token.slice(0, length));
      },
      `${length} characters`,
    );
  }
});

test('the name of a secret tells it from others and does not hold it', () => {
  const [one, other] = [newSecrets(new SystemRandom()), newSecrets(new SystemRandom())];
  assert.notEqual(secretName(one), secretName(other));
  assert.ok(!one.clusterSecret.includes(secretName(one)));
});
