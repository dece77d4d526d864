import assert from 'node:assert/strict';
import test from 'node:test';
import { utf8 } from '@webdfs/base';
import { fenceNote } from './conditions.ts';
import { packOwner } from './record.ts';
import { aView, Bench, NOW, ONE, THREE, TWO } from './step-bench.ts';

test('a conditional write waits until what is in flight of its key has settled, an unconditional one does not', () => {
  const bench = new Bench().takeOver();
  const first = bench.write();
  const create = bench.write({ conditions: { ifNoneMatch: ['*'] } });
  const other = bench.write({ key: utf8('b') });
  assert.equal(bench.state.last, 2);
  assert.equal(bench.result(create.ticket), 'waiting');
  bench.settle();
  assert.deepEqual(
    [first, create, other].map(({ ticket }) => bench.result(ticket)),
    ['done', 'PRECONDITION_FAILED', 'done'],
  );
});

test('writes behind one that waits wait too, in their order, and only so many', () => {
  const bench = new Bench().takeOver();
  bench.write();
  const parked = Array.from({ length: 64 }, () => bench.write({ conditions: { ifMatch: ['*'] } }));
  const one = bench.write();
  assert.equal(bench.result(one.ticket), 'BUSY');
  bench.settle();
  assert.equal(bench.state.last, 2);
  assert.equal(bench.result(parked[0]!.ticket), 'waiting');
  bench.settle();
  assert.equal(bench.result(parked[0]!.ticket), 'done');
});

test('a requirement that does not hold is a conflict, and nothing is written', () => {
  const bench = new Bench().takeOver();
  assert.equal(bench.result(bench.write({ requires: [{ key: utf8('u'), sequence: -1 }] }).ticket), 'CONFLICT');
  assert.equal(bench.result(bench.write({ requires: [{ key: utf8('u'), sequence: 0 }] }).ticket), 'waiting');
  assert.equal(bench.state.last, 1);
});

test('a record that names a fenced attempt, or one that is too old, is refused', () => {
  const bench = new Bench().takeOver();
  const attempt = new Uint8Array(16);
  new DataView(attempt.buffer).setUint16(0, Math.floor(NOW / 2 ** 32));
  new DataView(attempt.buffer).setUint32(2, NOW % 2 ** 32);
  const { owner } = packOwner({ type: 'blocks', attempt, blockBytes: 8_388_608 }, '{}');
  assert.equal(bench.result(bench.write({ owner }).ticket), 'waiting');
  bench.notes.set(Buffer.from(fenceNote(attempt)).toString('hex'), Uint8Array.of(1));
  assert.equal(bench.result(bench.write({ owner, key: utf8('b') }).ticket), 'FENCED');
  const old = packOwner({ type: 'blocks', attempt: new Uint8Array(16), blockBytes: 8_388_608 }, '{}').owner;
  assert.equal(bench.result(bench.write({ owner: old, key: utf8('c') }).ticket), 'FENCED');
});

test('a request older than half of what the table keeps is refused', () => {
  const bench = new Bench().takeOver();
  assert.equal(bench.result(bench.write({ ageMs: 60_001 }).ticket), 'TOO_LATE');
  assert.equal(bench.result(bench.write({ ageMs: 60_000 }).ticket), 'waiting');
});

test('when the ballot ends everybody who waits is sent on, and the bytes in flight are let go', () => {
  const bench = new Bench().takeOver();
  const [one, two] = [bench.write(), bench.write({ conditions: { ifMatch: ['*'] } })];
  bench.feed({ type: 'view', view: aView({ ballot: 12, primary: TWO, inSync: [TWO, ONE, THREE] }), at: bench.at });
  assert.deepEqual(
    [one, two].map(({ ticket }) => bench.result(ticket)),
    ['NOT_PRIMARY', 'NOT_PRIMARY'],
  );
  assert.equal(bench.context.flight.bytes, 0);
  assert.equal(bench.state.primary, undefined);
});
