import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, silentLog, SystemRandom } from '@webdfs/base';
import { newSecrets, type Secrets } from './credentials.ts';
import { MAX_OTHERS, SecretKeeper } from './secret-keeper.ts';
import { answerSecrets } from './token-rotation.ts';
import { seal, unseal } from './token-seal.ts';
import { secretName } from './token.ts';

const random = new SystemRandom();
const HOUR_MS = 3_600_000;
const message = (head: Uint8Array): { head: Uint8Array; attached: [] } => ({ head, attached: [] });

/** A keeper whose saves can be made to fail, and what it has saved and applied. */
function aKeeper(clock: ManualClock, first: Secrets = newSecrets(random)) {
  const seen = { saved: [] as Secrets[], applied: [] as (readonly string[])[], isBroken: false };
  const keeper = new SecretKeeper({
    secrets: first,
    save: (secrets) => {
      if (seen.isBroken) return Promise.reject(new Error('no room'));
      seen.saved.push(secrets);
      return Promise.resolve();
    },
    apply: (secrets) => seen.applied.push(secrets),
    clock,
    log: silentLog,
  });
  return { keeper, seen, first };
}

test('what is sealed opens with its secret alone, and nothing of it can be changed', () => {
  const [one, two] = [newSecrets(random).clusterSecret, newSecrets(random).clusterSecret];
  const sealed = seal({ word: 1 }, one, random);
  assert.deepEqual(unseal(sealed, [two, one]), { value: { word: 1 }, secret: one });
  assert.throws(() => unseal(sealed, [two]), { code: 'ACCESS_DENIED' });
  for (let at = 0; at < sealed.length; at++) {
    const changed = Uint8Array.from(sealed);
    changed[at]! ^= 1;
    assert.throws(() => unseal(changed, [one]), { code: 'ACCESS_DENIED' });
  }
  assert.throws(() => unseal(sealed.subarray(0, 20), [one]), { code: 'ACCESS_DENIED' });
});

test('a secret is on the disk before it is used, and a disk that fails changes nothing', async () => {
  const { keeper, seen, first } = aKeeper(new ManualClock());
  using _ = keeper;
  const next = newSecrets(random).clusterSecret;
  seen.isBroken = true;
  const set = { clusterSecret: next, otherSecrets: [] };
  await assert.rejects(keeper.take(set), /no room/);
  assert.deepEqual(keeper.accepted, [first.clusterSecret]);
  assert.deepEqual(seen.applied, []);
  seen.isBroken = false;
  await keeper.take(set);
  const formerNames = [secretName(first)];
  assert.deepEqual(seen.saved, [{ ...first, clusterSecret: next, otherSecrets: [], formerNames }]);
  assert.deepEqual(seen.applied, [[next]]);
});

test('an old secret is forgotten by itself once the overlap is over', async () => {
  const clock = new ManualClock();
  const { keeper, seen, first } = aKeeper(clock);
  using _ = keeper;
  const next = newSecrets(random).clusterSecret;
  const untilMs = clock.now() + HOUR_MS;
  await keeper.take({ clusterSecret: next, otherSecrets: [{ secret: first.clusterSecret, untilMs }] });
  assert.deepEqual(keeper.accepted, [next, first.clusterSecret]);
  for (let minute = 0; minute < 62; minute++) {
    clock.advance(60_000);
    await Promise.resolve();
  }
  assert.deepEqual(seen.applied.at(-1), [next]);
  assert.deepEqual(seen.saved.at(-1)?.otherSecrets, []);
});

test('only who knows a secret that is accepted is listened to, and nonsense changes nothing', async () => {
  const { keeper, seen, first } = aKeeper(new ManualClock());
  using _ = keeper;
  const next = newSecrets(random).clusterSecret;
  const take = { type: 'take', clusterSecret: next, otherSecrets: [] };
  await assert.rejects(answerSecrets(keeper, random, message(seal(take, next, random))), { code: 'ACCESS_DENIED' });
  const others = Array.from({ length: MAX_OTHERS + 1 }, () => ({ secret: next, untilMs: 1 }));
  for (const wrong of [
    7,
    { ...take, clusterSecret: 'short' },
    { ...take, otherSecrets: others },
    { ...take, otherSecrets: [{ secret: next }] },
  ]) {
    const sealed = seal(wrong, first.clusterSecret, random);
    await assert.rejects(answerSecrets(keeper, random, message(sealed)), { code: 'CORRUPT' });
  }
  assert.deepEqual(seen.saved, []);
  const answer = await answerSecrets(keeper, random, message(seal(take, first.clusterSecret, random)));
  assert.deepEqual(unseal(answer.head, [first.clusterSecret]).value, { name: secretName({ clusterSecret: next }) });
  assert.deepEqual(keeper.accepted, [next]);
});

test('the secrets of "webdfs up" are not changed by a node', async () => {
  using keeper = new SecretKeeper({
    secrets: newSecrets(random),
    save: undefined,
    apply: () => assert.fail('nothing is applied'),
    clock: new ManualClock(),
    log: silentLog,
  });
  await assert.rejects(keeper.take({ clusterSecret: 'a'.repeat(64), otherSecrets: [] }), { code: 'UNSUPPORTED' });
});
