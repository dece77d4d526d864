import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { asNodeId } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { type Complaint, judge } from './judgement.ts';

const complaint = (from: number, about: number, below = false): Complaint => ({
  from: asNodeId(from),
  about: asNodeId(about),
  below,
});

test('one complaint alone judges nobody', () => {
  assert.deepEqual(judge([complaint(1, 2)]), []);
});

test('whom two accuse goes', () => {
  assert.deepEqual(judge([complaint(1, 3), complaint(2, 3)]), [3]);
  assert.deepEqual(judge([complaint(1, 3), complaint(1, 3)]), []);
});

test('one complaint is enough where dropping would leave too few', () => {
  assert.deepEqual(judge([complaint(1, 2, true)]), [2]);
});

test('of two that accuse each other one goes, always the same', () => {
  assert.deepEqual(judge([complaint(1, 2, true), complaint(2, 1, true)]), [2]);
  assert.deepEqual(judge([complaint(2, 1, true), complaint(1, 2, true)]), [2]);
});

test('the larger side of a partition is kept', () => {
  const across = [1, 2].flatMap((small) =>
    [3, 4, 5].flatMap((large) => [complaint(small, large), complaint(large, small)]),
  );
  assert.deepEqual(judge(across), [1, 2]);
});

test('a one-way partition is one: who is not heard by many goes', () => {
  assert.deepEqual(judge([2, 3, 4].map((from) => complaint(from, 1))), [1]);
  // node 1 hears nobody: it accuses all, and they hear each other
  assert.deepEqual(judge([2, 3, 4].map((about) => complaint(1, about, true))), [1]);
});

test('complaints elsewhere that judge nobody are left alone', () => {
  assert.deepEqual(judge([complaint(1, 3), complaint(2, 3), complaint(8, 9)]), [3]);
});

test('who is kept hears each other, and nobody more could be kept', (t) => {
  const node = fc.integer({ min: 1, max: 9 });
  const complaints = fc.array(fc.record({ from: node.map(asNodeId), about: node.map(asNodeId), below: fc.boolean() }), {
    maxLength: 14,
  });
  fc.assert(
    fc.property(complaints, (all) => {
      const others = all.filter(({ from, about }) => from !== about);
      const out = judge(others);
      const deaf = (a: number, b: number): boolean =>
        others.some(({ from, about }) => (from === a && about === b) || (from === b && about === a));
      const isJudged = (node: number): boolean => {
        const about = others.filter((each) => each.about === node);
        return about.some(({ below }) => below) || new Set(about.map(({ from }) => from)).size > 1;
      };
      for (const gone of out) {
        const kept = Array.from({ length: 9 }, (_, i) => i + 1).filter((id) => !out.includes(asNodeId(id)));
        assert.ok(
          kept.some((id) => deaf(id, gone)),
          'who goes is deaf to one that stays',
        );
      }
      for (const { from, about } of others) {
        if (!isJudged(about)) continue;
        assert.ok(out.includes(from) || out.includes(about), 'of two that are deaf one goes');
      }
    }),
    { seed: seedOf(t), numRuns: 400 },
  );
});

test('many nodes are judged too, if not by the largest set', () => {
  const all: Complaint[] = [];
  for (let i = 1; i <= 40; i++) for (const about of [41, 42]) all.push(complaint(i, about));
  assert.deepEqual(judge(all), [41, 42]);
});
