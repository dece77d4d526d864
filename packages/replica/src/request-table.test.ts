import assert from 'node:assert/strict';
import test from 'node:test';
import { asGroupId, asPolicyId, type GroupKey, SeededRandom } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { RequestTable } from './request-table.ts';

const groupOf = (group: number): GroupKey => ({ policy: asPolicyId(1), group: asGroupId(group) });
const GROUP = groupOf(3);

function aTable(entries = 1_024, keepMs = 120_000): RequestTable {
  return new RequestTable({ entries, keepMs });
}

function anId(random: SeededRandom): Uint8Array {
  return random.bytes(16);
}

test('the table knows what a map would know, whatever is remembered, cut and expired', (t) => {
  const random = randomOf(t);
  const table = aTable(4_096, 1_000);
  const model = new Map<string, { sequence: number; ballot: number; timeMs: number }>();
  const ids: { id: Uint8Array; group: number; position: number; ballot: number; timeMs: number }[] = [];
  let now = 10_000;
  for (let i = 0; i < 6_000; i++) {
    now += random.below(3) === 0 ? 1 : 0;
    const dice = random.below(10);
    if (dice < 7 || ids.length === 0) {
      const id = anId(random);
      const group = random.below(5);
      const write = { sequence: i + 1, ballot: 1 + random.below(3), timeMs: now };
      const position = table.remember(groupOf(group), id, write);
      ids.push({ id, group, position, ballot: write.ballot, timeMs: now });
      model.set(`${group}/${Buffer.from(id).toString('hex')}`, write);
    } else if (dice === 7) {
      const { id, group, position, ballot } = ids[random.below(ids.length)]!;
      table.forget(position, ballot);
      model.delete(`${group}/${Buffer.from(id).toString('hex')}`);
    } else table.expire(now);
    const { id, group, timeMs } = ids[random.below(ids.length)]!;
    const found = table.find(groupOf(group), id);
    const known = model.get(`${group}/${Buffer.from(id).toString('hex')}`);
    if (timeMs >= now - 1_000) assert.deepEqual(found, known);
    else if (found !== undefined) assert.deepEqual(found, known);
  }
});

test('a request is known in its own group only', () => {
  const table = aTable();
  const id = anId(new SeededRandom(1));
  table.remember(GROUP, id, { sequence: 5, ballot: 2, timeMs: 9 });
  assert.equal(table.find(groupOf(4), id), undefined);
  assert.deepEqual(table.find(GROUP, id), { sequence: 5, ballot: 2, timeMs: 9 });
});

test('a full table forgets the oldest and says how far back it can be trusted', () => {
  const random = new SeededRandom(2);
  const table = aTable(1_024);
  const first = anId(random);
  table.remember(GROUP, first, { sequence: 1, ballot: 1, timeMs: 100 });
  for (let i = 1; i < 1_024; i++) table.remember(GROUP, anId(random), { sequence: i + 1, ballot: 1, timeMs: 100 + i });
  assert.equal(table.horizonMs, 0);
  table.remember(GROUP, anId(random), { sequence: 2_000, ballot: 1, timeMs: 5_000 });
  assert.equal(table.find(GROUP, first), undefined);
  assert.equal(table.horizonMs, 100);
  assert.equal(table.size, 1_024);
});

test('the requests of one group are found without looking at the others, newest first', () => {
  const random = new SeededRandom(3);
  const table = aTable();
  for (let i = 1; i <= 300; i++) table.remember(groupOf(i % 3), anId(random), { sequence: i, ballot: 1, timeMs: i });
  const sequences = [...table.of(groupOf(1))].map(({ sequence }) => sequence);
  assert.equal(sequences.length, 100);
  assert.deepEqual(
    sequences,
    sequences.toSorted((a, b) => b - a),
  );
});

test('a repeat gets the same answer, and one whose place is no longer known gets it without what it replaced', () => {
  const table = aTable();
  const id = anId(new SeededRandom(4));
  table.remember(GROUP, id, { sequence: 5, ballot: 2, timeMs: 9 });
  assert.deepEqual(table.answer(GROUP, id), { sequence: 5, ballot: 2, modifiedMs: 9, replaced: undefined });
  const answer = { sequence: 5, ballot: 2, modifiedMs: 9, replaced: { sequence: 1, summary: new Uint8Array(32) } };
  table.keepAnswer(GROUP, id, answer);
  assert.equal(table.answer(GROUP, id), answer);
});
