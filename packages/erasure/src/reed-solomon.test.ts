import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, fromHex, SeededRandom, toHex, utf8 } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { type CodeName, CODES, MAX_DATA, MAX_PARITY } from './code.ts';
import { openKernel } from './open-kernel.ts';
import { ReedSolomon } from './reed-solomon.ts';

const kernel = openKernel();
const hex = (blocks: readonly Uint8Array[]): string[] => blocks.map(toHex);
const blank = (count: number, bytes: number): Uint8Array[] =>
  Array.from({ length: count }, () => new Uint8Array(bytes));
const throwsCode =
  (code: string) =>
  (error: unknown): boolean =>
    codeOf(error) === code;

/** All shards of random data, the parity encoded. */
function aStripe(code: ReedSolomon, bytes: number, random: SeededRandom): Uint8Array[] {
  const data = Array.from({ length: code.data }, () => random.bytes(bytes));
  const parity = blank(code.parity, code.parityBytes(bytes));
  code.encode(data, parity);
  return [...data, ...parity];
}

/** All ways to choose up to `most` of 0 … count − 1. */
function* choices(count: number, most: number, from = 0): Generator<number[]> {
  yield [];
  if (most === 0) return;
  for (let first = from; first < count; first++) {
    for (const rest of choices(count, most - 1, first + 1)) yield [first, ...rest];
  }
}

const without = (shards: readonly Uint8Array[], lost: readonly number[]): (Uint8Array | undefined)[] =>
  shards.map((shard, i) => (lost.includes(i) ? undefined : shard));

const TEXTS = ['WebDFS: four', 'data buckets', 'three parity', 'any 3 may di'];
const PARITY = ['26021d603031524306431111', 'f366844c25fcf657192271e7', 'd1cf173e94c15fbf702bdf70'];

test('worked bytes, one symbol each', () => {
  const parity = blank(3, 1);
  new ReedSolomon({ kernel, data: 4, parity: 3 }).encode(['01', '02', '04', '80'].map(fromHex), parity);
  assert.deepEqual(hex(parity), ['87', 'd9', '83']);
});

test('worked bytes, twelve each: encode, delta, decode', () => {
  const code = new ReedSolomon({ kernel, data: 4, parity: 3 });
  const data = TEXTS.map(utf8);
  const parity = blank(3, 12);
  code.encode(data, parity);
  assert.deepEqual(hex(parity), PARITY);
  assert.deepEqual(hex(code.decode(without([...data, ...parity], [0, 2, 4]))), [...hex(data), ...PARITY]);
  code.update(2, fromHex('202020202000000000000000'), parity);
  assert.deepEqual(hex(parity), ['06223d401031524306431111', '53c624ec85fcf657192271e7', 'eaf42c05afc15fbf702bdf70']);
  const again = blank(3, 12);
  code.encode([data[0], data[1], utf8('THREE parity'), data[3]], again);
  assert.deepEqual(parity, again);
});

test('worked plans: what a lost shard takes of each that is read', () => {
  const code = new ReedSolomon({ kernel, data: 4, parity: 3 });
  const three = code.plan([0, 2, 4]);
  assert.deepEqual(three.reads, [1, 3, 5, 6]);
  assert.deepEqual(three.matrix.slice(0, 2), [
    [0x4b, 0x16, 0xb7, 0xb6],
    [0xf1, 0x30, 0x77, 0x77],
  ]);
  const one = code.plan([0]);
  assert.deepEqual(one.reads, [1, 2, 3, 4]);
  assert.equal(one.byXor, true);
  const otherParity = code.plan([0], [1, 2, 3, 5]);
  assert.deepEqual(otherParity.matrix, [[0x59, 0x05, 0xe6, 0x01]]);
  assert.equal(otherParity.byXor, false);
  assert.deepEqual(code.plan([4]), code.plan([4]));
  assert.deepEqual(code.plan([4]).reads, [0, 1, 2, 3]);
  assert.equal(code.plan([4]).byXor, true);
});

test("worked words of the founding documents' matrix over GF(2^16)", () => {
  const code = new ReedSolomon({ kernel, data: 4, parity: 3, code: 'thesis' });
  // symbols are little-endian in blocks: the word 5765 is the bytes 65 57
  const data = ['6557', '4462', '5346', '0100'].map(fromHex);
  const parity = blank(3, 2);
  code.encode(data, parity);
  assert.deepEqual(hex(parity), ['7373', 'acc2', '54ab']);
});

for (const name of Object.keys(CODES) as CodeName[]) {
  test(`${name}: up to six data and four parity shards, every loss decodes to the bytes, one more is refused`, (t) => {
    const random = new SeededRandom(seedOf(t));
    for (let data = 1; data <= Math.min(6, CODES[name].maxData); data++) {
      for (let parity = 1; parity <= Math.min(4, CODES[name].maxParity); parity++) {
        const code = new ReedSolomon({ kernel, data, parity, code: name });
        const shards = aStripe(code, 38, random);
        assert.equal(code.verify(shards), true);
        for (const lost of choices(data + parity, parity)) {
          assert.deepEqual(code.decode(without(shards, lost)), shards, `lost ${lost.join()} of ${data} + ${parity}`);
        }
        const tooMany = [...choices(data + parity, parity + 1)].filter((lost) => lost.length > parity);
        for (const lost of tooMany) assert.throws(() => code.decode(without(shards, lost)), throwsCode('LOST'));
      }
    }
  });

  test(`${name}: random losses of larger stripes, from any shards that are left`, (t) => {
    const random = new SeededRandom(seedOf(t));
    const { maxData, maxParity } = CODES[name];
    for (let round = 0; round < 60; round++) {
      const code = new ReedSolomon({
        kernel,
        data: 1 + random.below(maxData),
        parity: 1 + random.below(maxParity),
        code: name,
      });
      const shards = aStripe(code, 2 * (1 + random.below(200)), random);
      const order = shards.map((_, i) => i).toSorted(() => random.fraction() - 0.5);
      const lost = order.slice(0, 1 + random.below(code.parity));
      const available = order.slice(lost.length).slice(0, code.data);
      const plan = code.plan(lost, available);
      assert.deepEqual(
        plan.reads,
        available.toSorted((a, b) => a - b),
      );
      const made = blank(lost.length, shards[0]!.length);
      plan.repair(
        plan.reads.map((shard) => shards[shard]),
        made,
      );
      assert.deepEqual(
        made,
        plan.lost.map((shard) => shards[shard]),
      );
    }
  });

  test(`${name}: shards of unequal length are shards padded with zeros`, (t) => {
    const random = new SeededRandom(seedOf(t));
    for (let round = 0; round < 100; round++) {
      const code = new ReedSolomon({ kernel, data: 1 + random.below(4), parity: 1 + random.below(3), code: name });
      const lengths = Array.from({ length: code.data }, () => random.below(150));
      const bytes = code.parityBytes(Math.max(...lengths)) + code.parityBytes(random.below(20));
      const short = lengths.map((length) => random.bytes(length));
      const padded = short.map((shard) => {
        const whole = new Uint8Array(bytes);
        whole.set(shard);
        return whole;
      });
      const [parity, expected] = [blank(code.parity, bytes), blank(code.parity, bytes)];
      for (const block of parity) block.fill(0xee);
      code.encode(short, parity);
      code.encode(padded, expected);
      assert.deepEqual(parity, expected);
      assert.equal(code.verify([...short, ...parity]), true);
      const lost = random.below(code.data);
      const made = code.decode(without([...short, ...parity], [lost]))[lost]!;
      const kept = Math.min(made.length, lengths[lost]!);
      assert.deepEqual(made.subarray(0, kept), short[lost]!.subarray(0, kept));
      assert.ok(made.length >= lengths[lost]! && made.subarray(kept).every((byte) => byte === 0));
    }
  });

  test(`${name}: any history of deltas leaves the parity of a full encode, and a delta undoes itself`, (t) => {
    const random = new SeededRandom(seedOf(t));
    const code = new ReedSolomon({ kernel, data: Math.min(5, CODES[name].maxData), parity: 3, code: name });
    const bytes = 90;
    const data = blank(code.data, bytes);
    const parity = blank(3, bytes);
    for (let round = 0; round < 200; round++) {
      const index = random.below(code.data);
      const delta = random.bytes(random.below(bytes + 1));
      for (const [i, byte] of delta.entries()) data[index]![i]! ^= byte;
      if (random.below(2) === 0) code.update(index, delta, parity);
      // each parity may live elsewhere and hear of the delta alone
      else
        for (const p of [2, 0, 1])
          code.update(
            index,
            delta,
            parity.map((block, i) => (i === p ? block : undefined)),
          );
    }
    const full = blank(3, bytes);
    code.encode(data, full);
    assert.deepEqual(parity, full);
    const before = parity.map((block) => block.slice());
    const delta = random.bytes(33);
    code.update(1, delta, parity);
    assert.notDeepEqual(parity, before);
    code.update(1, delta, parity);
    assert.deepEqual(parity, before);
  });

  test(`${name}: pieces of any size, in any order between shards, stream to the same parity`, (t) => {
    const random = new SeededRandom(seedOf(t));
    for (let round = 0; round < 30; round++) {
      const code = new ReedSolomon({ kernel, data: Math.min(4, 1 + random.below(4)), parity: 2, code: name });
      const bytes = 2 * (1 + random.below(150));
      const data = Array.from({ length: code.data }, () => random.bytes(random.below(bytes + 1)));
      const parity = blank(2, bytes).map((block) => block.fill(0xaa));
      const stream = code.stream(parity);
      for (;;) {
        const unfinished = data.flatMap((shard, i) => (stream.written(i) < shard.length ? [i] : []));
        if (unfinished.length === 0) break;
        const index = unfinished[random.below(unfinished.length)]!;
        const from = stream.written(index);
        stream.write(index, data[index]!.subarray(from, from + 1 + random.below(40)));
      }
      const expected = blank(2, bytes);
      code.encode(data, expected);
      assert.deepEqual(parity, expected);
    }
  });
}

test('a parity shard alone can be encoded, and a range of bytes of every shard is a stripe of its own', (t) => {
  const random = new SeededRandom(seedOf(t));
  const code = new ReedSolomon({ kernel, data: 10, parity: 4 });
  const shards = aStripe(code, 1000, random);
  const third = new Uint8Array(1000);
  code.encode(shards.slice(0, 10), [undefined, undefined, third, undefined]);
  assert.deepEqual(third, shards[12]);
  const plan = code.plan([3, 11]);
  const part = blank(2, 100);
  plan.repair(
    plan.reads.map((shard) => shards[shard]!.subarray(777, 877)),
    part,
  );
  assert.deepEqual(
    part,
    [3, 11].map((shard) => shards[shard]!.subarray(777, 877)),
  );
});

test('verify sees one wrong bit in any shard, beyond its first tile too', (t) => {
  const random = new SeededRandom(seedOf(t));
  const code = new ReedSolomon({ kernel, data: 3, parity: 2 });
  const shards = aStripe(code, 40_000, random);
  for (const shard of shards) {
    for (const at of [0, 16_383, 16_384, 39_999]) {
      shard[at]! ^= 1 << random.below(8);
      assert.equal(code.verify(shards), false);
      shard.set(code.decode(without(shards, [shards.indexOf(shard)]))[shards.indexOf(shard)]!);
      assert.equal(code.verify(shards), true);
    }
  }
});

test('the first data and parity shard need no products: one lost data shard is repaired by XOR as long as P0 is there', () => {
  for (const name of Object.keys(CODES) as CodeName[]) {
    const code = new ReedSolomon({ kernel, data: 4, parity: 3, code: name });
    for (let lost = 0; lost < 4; lost++) {
      assert.equal(code.plan([lost]).byXor, true);
      assert.equal(code.plan([lost]).reads.includes(4), true);
    }
    assert.equal(code.plan([4]).byXor, true);
    assert.equal(code.plan([5]).byXor, false);
  }
});

test('plans are remembered, so many of them, and never read what is lost', () => {
  const code = new ReedSolomon({ kernel, data: 10, parity: 4 });
  const first = code.plan([0]);
  assert.equal(code.plan([0]), first);
  assert.equal(code.plan([0], [5, 4, 3, 2, 1, 0, 9, 8, 7, 6, 10, 11, 12, 13]), first);
  const others = [...choices(14, 2)].filter((lost) => lost.length === 2);
  assert.ok(others.length > 64);
  for (const lost of others) code.plan(lost);
  assert.notEqual(code.plan([0]), first);
  assert.deepEqual(code.plan([0]).matrix, first.matrix);
});

test('blocks that overlap are refused before anything is written', () => {
  const code = new ReedSolomon({ kernel, data: 2, parity: 2 });
  const block = kernel.memory.allocate(400);
  const [a, b, p, q] = [0, 100, 200, 300].map((at) => block.subarray(at, at + 100)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  const overlaps: [Uint8Array[], Uint8Array[]][] = [
    [
      [a, b],
      [p, block.subarray(299, 399)],
    ],
    [
      [a, b],
      [p, p],
    ],
    [
      [a, b],
      [block.subarray(50, 150), q],
    ],
    [
      [a, b],
      [p, a],
    ],
    [
      [a, block.subarray(150, 250)],
      [p, q],
    ],
  ];
  block.fill(7);
  for (const [data, parity] of overlaps) {
    assert.throws(() => code.encode(data, parity), throwsCode('INVALID'));
    assert.ok(block.every((byte) => byte === 7));
  }
  assert.throws(() => code.update(0, block.subarray(250, 350), [p, q]), throwsCode('INVALID'));
  code.encode([a, a], [p, q]);
  code.encode([block.subarray(0, 100), block.subarray(50, 150)], [p, q]);
  kernel.memory.free(block);
});

test('arguments that cannot be right are refused', () => {
  const code = new ReedSolomon({ kernel, data: 2, parity: 2 });
  const wide = new ReedSolomon({ kernel, data: 2, parity: 2, code: 'cauchy16' });
  const [a, b, p, q] = blank(4, 10) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array];
  const long = new Uint8Array(11);
  const wrong: (() => unknown)[] = [
    () => new ReedSolomon({ kernel, data: 0, parity: 2 }),
    () => new ReedSolomon({ kernel, data: MAX_DATA + 1, parity: 2 }),
    () => new ReedSolomon({ kernel, data: 4, parity: MAX_PARITY + 1 }),
    () => new ReedSolomon({ kernel, data: 4, parity: 0 }),
    () => new ReedSolomon({ kernel, data: 2.5, parity: 1 }),
    () => new ReedSolomon({ kernel, data: 5, parity: 3, code: 'thesis' }),
    () => new ReedSolomon({ kernel, data: 4, parity: 2, code: 'none' as CodeName }),
    () => code.encode([a], [p, q]),
    () => code.encode([a, b], [p]),
    () => code.encode([a, long], [p, q]),
    () => code.encode([a, b], [p, new Uint8Array(9)]),
    () => wide.encode([a, b], [new Uint8Array(11), long]),
    () => code.update(2, a, [p, q]),
    () => code.update(-1, a, [p, q]),
    () => code.update(0, long, [p, q]),
    () => code.plan([4]),
    () => code.plan([0], [1, 2, 9]),
    () => code.decode([a, b, p]),
    () => code.verify([a, b, p]),
    () => code.verify([long, b, p, q]),
    () => code.stream([p, q]).write(2, a),
    () => code.stream([p, q]).write(0, long),
  ];
  for (const [i, call] of wrong.entries()) assert.throws(call, throwsCode('INVALID'), `case ${i}`);
});
