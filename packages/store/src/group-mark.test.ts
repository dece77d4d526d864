import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { addVoid, isVoid, packMark, reviveFrom, unpackMark, type VoidRange } from './group-mark.ts';
import { MAX_META_BYTES, MAX_VOID_RANGES } from './limits.ts';

const range: fc.Arbitrary<VoidRange> = fc
  .tuple(fc.nat(40), fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 20 }), fc.option(fc.nat(10)))
  .map(([after, count, below, above]) => {
    const all = { after, upTo: after + count, below };
    return above === null || above + 1 >= below ? all : { ...all, above };
  });

test('a mark comes back as it was packed', () => {
  const content = {
    number: 3,
    mark: { role: 'learner', syncedIn: 7, progress: 'p' } as const,
    voids: [
      { after: 1, upTo: 2, below: 9 },
      { after: 3, upTo: 4, below: 9, above: 6 },
    ],
    base: { sequence: 5, ballot: 6, number: 2 },
  };
  assert.deepEqual(unpackMark(packMark(content)), content);
});

test('bytes that are no mark are damage', () => {
  for (const text of ['', '{', '{}', '{"number":1}', '{"number":"1","voids":[]}']) {
    assert.throws(() => unpackMark(new TextEncoder().encode(text)), { code: 'CORRUPT' }, text);
  }
});

test('what a range was added for is void, and what was void before stays so', () => {
  fc.assert(
    fc.property(
      fc.array(range, { maxLength: 12 }),
      range,
      fc.nat(60),
      fc.nat(25),
      (before, added, sequence, ballot) => {
        const voids = before.reduce<VoidRange[]>((all, next) => addVoid(all, next), []);
        const after = addVoid(voids, added);
        const expected = [...voids, added].some((one) => isVoid([one], sequence, ballot));
        assert.equal(isVoid(after, sequence, ballot), expected);
      },
    ),
  );
});

test('an entry that is taken again is void no more, nor is anything before it in the same range; what follows it is', () => {
  fc.assert(
    fc.property(range, fc.nat(60), fc.nat(25), (one, sequence, ballot) => {
      const revived = reviveFrom([one], sequence, ballot);
      assert.equal(isVoid(revived, sequence, ballot), false);
      if (!isVoid([one], sequence, ballot)) return assert.deepEqual(revived, [one]);
      assert.equal(isVoid(revived, sequence, ballot - 1), ballot > 0);
      for (let higher = ballot + 1; higher < 25; higher++) {
        assert.equal(isVoid(revived, sequence, higher), higher < one.below, 'what is void above it stays so');
      }
      if (sequence < one.upTo) assert.equal(isVoid(revived, one.upTo, ballot), true);
    }),
  );
});

test('a log that is void and taken again leaves void what it had overtaken before', () => {
  let voids = addVoid([], { after: 10, upTo: 11, below: 5 });
  voids = addVoid(voids, { after: 6, upTo: 11, below: 6 });
  for (let sequence = 7; sequence <= 10; sequence++) voids = reviveFrom(voids, sequence, 4);
  voids = reviveFrom(voids, 11, 5);
  for (let sequence = 7; sequence <= 11; sequence++) assert.equal(isVoid(voids, sequence, 3), true);
  assert.equal(isVoid(voids, 10, 4), false);
  assert.equal(isVoid(voids, 11, 4), true);
  assert.equal(isVoid(voids, 11, 5), false);
  assert.ok(voids.length <= 3);
});

test('ranges are bounded in number, so that a mark always fits its entry', () => {
  let voids: VoidRange[] = [];
  for (let i = 0; i < 3 * MAX_VOID_RANGES; i++) {
    voids = addVoid(voids, {
      after: 2 ** 47 + 10 * i,
      upTo: 2 ** 47 + 10 * i + 3,
      below: 2 ** 52 + i,
      above: 2 ** 51 + i,
    });
  }
  assert.equal(voids.length, MAX_VOID_RANGES);
  const progress = 'x'.repeat(4_000);
  const packed = packMark({ number: 9, mark: { role: 'learner', syncedIn: 1, progress }, voids });
  assert.ok(packed.length <= MAX_META_BYTES, `${packed.length} bytes`);
  assert.equal(isVoid(voids, voids.at(-1)!.upTo, 2 ** 52), true);
});
