import * as w from './assembler.ts';
import { CONSTANTS, DESCRIPTOR_BYTES, PASSES, TABLE_BYTES } from './layout.ts';

/*
 * The kernels: each makes up to four target blocks out of any number of source blocks in one pass over the memory, so that a
 * source is read once and a target written once.
 *
 *   target[row] = sum over sources of coefficient[row][source] · source      (sums are XOR)
 *
 * A product with a constant is two look-ups in tables of sixteen bytes, one per nibble, and one `swizzle` looks up sixteen at
 * once. A kernel is named for its field and the way of each of its rows:
 *
 *   x  all coefficients are 1: plain XOR. Only the first row.
 *   h  coefficients are 1, 2, 4, 8 … of the sources taken last to first: Horner's rule, four cheap steps a source. Second row.
 *   t  any coefficients, by tables.
 *
 * Sources come as descriptors of 8 bytes, { address, address of its tables }; those whose coefficients are all 1 come last and
 * need no tables. Tables of one source lie row after row: 32 bytes in GF(2^8) (low nibble, high nibble), 128 in GF(2^16)
 * (nibble by nibble, each with the low and then the high bytes of the products). Symbols of GF(2^16) are little-endian.
 *
 * Reads may pass the end of a source by 31 bytes, whose value does not matter; nothing is written outside a target.
 * Source of the table scheme: Plank, Greenan, Miller, "Screaming Fast Galois Field Arithmetic Using Intel SIMD Instructions",
 * FAST 2013; of Horner by doubling: Anvin, "The mathematics of RAID-6", 2004.
 */

/** Vectors of 16 bytes that a step of each kernel takes, by measurement: more need more registers than there are. */
const VECTORS: Readonly<Record<string, number>> = {
  gf8_x: 8,
  gf8_xh: 4,
  gf8_xt: 3,
  gf8_xtt: 2,
  gf8_xttt: 2,
  gf8_t: 3,
  gf8_tt: 3,
  gf8_ttt: 2,
  gf8_tttt: 3,
  gf16_xt: 4,
  gf16_t: 4,
  gf16_tt: 4,
};

const [DESCRIPTORS, ONES, COUNT, TARGETS, LENGTH, ACCUMULATE] = [0, 1, 2, 3, 4, 5];
const PARAMETERS = 6;

const EVEN = Array.from({ length: 16 }, (_, i) => 2 * i);
const ODD = Array.from({ length: 16 }, (_, i) => 2 * i + 1);
const ZIP_LOW = Array.from({ length: 16 }, (_, i) => (i >> 1) + 16 * (i & 1));
const ZIP_HIGH = ZIP_LOW.map((lane) => lane + 8);
/** Bytes from `count` on move to the front. */
const downBy = (count: number): number[] => Array.from({ length: 16 }, (_, i) => (i + count) & 15);

/** Stores the first `count` (0..15) bytes of a vector. */
function storePart(): w.FunctionSource {
  const [address, vector, count] = [0, 1, 2];
  const parts = ([8, 4, 2, 1] as const).map((size) =>
    w.when(w.and(w.get(count), w.int(size)), [
      ...w.storeFirst(size, w.get(address), w.get(vector)),
      ...w.set(address, w.add(w.get(address), w.int(size))),
      ...w.set(vector, w.shuffle(w.get(vector), w.get(vector), downBy(size))),
    ]),
  );
  return { parameters: [w.TYPE.i32, w.TYPE.v128, w.TYPE.i32], results: [], locals: [], body: parts.flat() };
}
const STORE_PART = 0;

/** 1 if all of `length` bytes are 0. */
function isZero(): w.FunctionSource {
  const [address, length, end] = [0, 1, 2];
  const { get, set, add, until, when } = w;
  const past = (step: number): w.Code => w.less(w.subtract(get(end), get(address)), w.int(step));
  const advance = (step: number): w.Code => set(address, add(get(address), w.int(step)));
  const vectors = [0, 16, 32, 48].map((offset) => w.load128(get(address), offset));
  return {
    name: 'is_zero',
    parameters: [w.TYPE.i32, w.TYPE.i32],
    results: [w.TYPE.i32],
    locals: [w.TYPE.i32],
    body: [
      ...set(end, add(get(address), get(length))),
      ...until(past(64), [
        ...when(w.anyTrue(vectors.reduce((a, b) => w.or128(a, b))), w.giveBack(w.int(0))),
        ...advance(64),
      ]),
      ...until(past(1), [...when(w.load8(get(address)), w.giveBack(w.int(0))), ...advance(1)]),
      ...w.int(1),
    ],
  };
}

/** The functions of one kernel share their locals through this: names for positions, and which of them are vectors. */
class Frame {
  readonly locals: w.ValueType[] = [];

  local(type: w.ValueType): w.Local {
    this.locals.push(type);
    return PARAMETERS + this.locals.length - 1;
  }

  locals128(count: number): w.Local[] {
    return Array.from({ length: count }, () => this.local(w.TYPE.v128));
  }
}

/** One kernel being written: `rows` of ways, over a field, with its locals. */
class KernelWriter {
  readonly #frame = new Frame();
  readonly #bits: 8 | 16;
  readonly #rows: string;
  readonly #swizzle: (table: w.Code, positions: w.Code) => w.Code;
  readonly #position = this.#frame.local(w.TYPE.i32);
  readonly #descriptor = this.#frame.local(w.TYPE.i32);
  readonly #ones = this.#frame.local(w.TYPE.i32);
  readonly #end = this.#frame.local(w.TYPE.i32);
  readonly #source = this.#frame.local(w.TYPE.i32);
  readonly #tables = this.#frame.local(w.TYPE.i32);
  readonly #left = this.#frame.local(w.TYPE.i32);
  readonly #targets: readonly w.Local[];
  readonly #nibble = this.#frame.local(w.TYPE.v128);
  readonly #scratch = this.#frame.local(w.TYPE.v128);
  readonly #polynomial = this.#frame.local(w.TYPE.v128);

  constructor(bits: 8 | 16, rows: string, relaxed: boolean) {
    this.#bits = bits;
    this.#rows = rows;
    this.#swizzle = relaxed ? w.relaxedSwizzle : w.swizzle;
    this.#targets = Array.from(rows, () => this.#frame.local(w.TYPE.i32));
  }

  write(): w.FunctionSource {
    const name = `gf${this.#bits}_${this.#rows}`;
    const { get, set, add, shiftLeft } = w;
    const bytes = w.int(Math.log2(DESCRIPTOR_BYTES));
    const general = w.subtract(get(COUNT), get(ONES));
    const least = this.#bits / 8;
    const body = [
      ...set(this.#ones, add(get(DESCRIPTORS), shiftLeft(general, bytes))),
      ...set(this.#end, add(get(DESCRIPTORS), shiftLeft(get(COUNT), bytes))),
      ...(this.#rows.includes('t') ? set(this.#nibble, w.load128(w.int(CONSTANTS.nibble))) : []),
      ...(this.#rows.includes('h') ? set(this.#polynomial, w.load128(w.int(CONSTANTS.polynomial))) : []),
      ...this.#targets.flatMap((target, row) => set(target, w.load(get(TARGETS), 4 * row))),
      ...this.#steps(VECTORS[name]!, false),
      ...this.#steps(least, true),
    ];
    const parameters = Array.from({ length: PARAMETERS }, () => w.TYPE.i32);
    return { name, parameters, results: [], locals: this.#frame.locals, body };
  }

  /** All steps of so many vectors that fit; or, as `last`, the rest, where the final step may be partial. */
  #steps(vectors: number, last: boolean): w.Code {
    const { get, set, add } = w;
    const width = 16 * vectors;
    const sums = Array.from(this.#rows, () => this.#frame.locals128(vectors));
    const values = this.#frame.locals128(vectors);
    const nibbles = this.#rows.includes('t') ? [0, 1].map(() => this.#frame.locals128(vectors)) : [];
    const zero = w.splat8(0);
    return [
      ...set(this.#left, w.subtract(get(LENGTH), get(this.#position))),
      ...w.until(w.less(get(this.#left), w.int(last ? 1 : width)), [
        ...sums.flat().flatMap((sum) => set(sum, zero)),
        ...set(this.#descriptor, get(DESCRIPTORS)),
        ...(this.#rows === 'x' ? [] : this.#eachSource(this.#ones, this.#addSource(sums, values, nibbles))),
        ...this.#eachSource(this.#end, this.#addOnes(sums, values)),
        ...sums.flatMap((row, index) => this.#store(this.#targets[index]!, row, last)),
        ...set(this.#position, add(get(this.#position), w.int(width))),
        // of the last step less than its width may be left: then nothing is
        ...(last
          ? w.when(
              w.less(get(this.#left), w.int(width)),
              set(this.#left, w.int(0)),
              set(this.#left, w.subtract(get(this.#left), w.int(width))),
            )
          : set(this.#left, w.subtract(get(this.#left), w.int(width)))),
      ]),
    ];
  }

  #eachSource(end: w.Local, body: w.Code): w.Code {
    const next = w.set(this.#descriptor, w.add(w.get(this.#descriptor), w.int(DESCRIPTOR_BYTES)));
    return w.until(w.equal(w.get(this.#descriptor), w.get(end)), [...body, ...next]);
  }

  /** Adds one source to all rows. Sums come before products: that frees registers. */
  #addSource(
    sums: readonly (readonly w.Local[])[],
    values: readonly w.Local[],
    nibbles: readonly (readonly w.Local[])[],
  ): w.Code {
    const products = sums.flatMap((row, index) =>
      this.#rows[index] !== 't'
        ? []
        : this.#bits === 8
          ? this.#addBytes(index, row, nibbles)
          : this.#addWords(index, row, nibbles),
    );
    const plain = sums.filter((_, index) => this.#rows[index] !== 't');
    const tables = products.length === 0 ? [] : w.set(this.#tables, w.load(w.get(this.#descriptor), 4));
    return [
      ...this.#eachVector(values, (i) => [...this.#addVector(plain, values, i), ...this.#split(values, nibbles, i)]),
      ...tables,
      ...products,
    ];
  }

  #addOnes(sums: readonly (readonly w.Local[])[], values: readonly w.Local[]): w.Code {
    return this.#eachVector(values, (i) => this.#addVector(sums, values, i));
  }

  /** Loads the vectors of a source at the position one by one; of GF(2^16) in pairs: all low bytes, then all high bytes. */
  #eachVector(values: readonly w.Local[], use: (i: number) => w.Code): w.Code {
    const start = w.set(this.#source, w.add(w.load(w.get(this.#descriptor)), w.get(this.#position)));
    const step = this.#bits / 8;
    const code: number[] = [...start];
    for (let first = 0; first < values.length; first += step) {
      const group = values.slice(first, first + step);
      code.push(...group.flatMap((value, i) => w.set(value, w.load128(w.get(this.#source), 16 * (first + i)))));
      if (step === 2) code.push(...this.#permute(group, EVEN, ODD));
      code.push(...group.flatMap((_, i) => use(first + i)));
    }
    return code;
  }

  #addVector(rows: readonly (readonly w.Local[])[], values: readonly w.Local[], i: number): w.Code {
    return rows.flatMap((row, index) => {
      const sum = row[i]!;
      const double = this.#rows[index] === 'h' ? w.set(sum, this.#doubled(sum)) : [];
      return [...double, ...this.#addTo(sum, w.get(values[i]!))];
    });
  }

  /** A vector of GF(2^8) times 2: shifted, and the polynomial added where the top bit fell out. */
  #doubled(vector: w.Local): w.Code {
    const overflow = w.and128(w.lessBytes(w.get(vector), w.splat8(0)), w.get(this.#polynomial));
    return w.xor128(w.addBytes(w.get(vector), w.get(vector)), overflow);
  }

  #permute(vectors: readonly w.Local[], first: w.Code, second: w.Code): w.Code {
    const code: number[] = [];
    for (let i = 0; i < vectors.length; i += 2) {
      const [a, b] = [vectors[i]!, vectors[i + 1]!];
      code.push(...w.set(this.#scratch, w.shuffle(w.get(a), w.get(b), first)));
      code.push(...w.set(b, w.shuffle(w.get(a), w.get(b), second)), ...w.set(a, w.get(this.#scratch)));
    }
    return code;
  }

  #split(values: readonly w.Local[], nibbles: readonly (readonly w.Local[])[], i: number): w.Code {
    const value = w.get(values[i]!);
    return nibbles.flatMap((half, high) =>
      w.set(half[i]!, w.and128(high === 0 ? value : w.shiftRight16(value, 4), w.get(this.#nibble))),
    );
  }

  #addBytes(row: number, sums: readonly w.Local[], nibbles: readonly (readonly w.Local[])[]): w.Code {
    return nibbles.flatMap((half, high) => [
      ...w.set(this.#scratch, w.load128(w.get(this.#tables), TABLE_BYTES[8] * row + 16 * high)),
      ...half.flatMap((nibble, i) => this.#addTo(sums[i]!, this.#swizzle(w.get(this.#scratch), w.get(nibble)))),
    ]);
  }

  #addWords(row: number, sums: readonly w.Local[], nibbles: readonly (readonly w.Local[])[]): w.Code {
    const code: number[] = [];
    // nibble 0 and 1 of a symbol are the halves of its low byte (even vectors), 2 and 3 of its high byte (odd ones)
    for (let nibble = 0; nibble < 4; nibble++) {
      const positions = nibbles[nibble & 1]!.filter((_, i) => (i & 1) === nibble >> 1);
      for (const byte of [0, 1]) {
        const table = w.load128(w.get(this.#tables), TABLE_BYTES[16] * row + 32 * nibble + 16 * byte);
        code.push(...w.set(this.#scratch, table));
        for (const [pair, position] of positions.entries()) {
          code.push(...this.#addTo(sums[2 * pair + byte]!, this.#swizzle(w.get(this.#scratch), w.get(position))));
        }
      }
    }
    return code;
  }

  #addTo(sum: w.Local, value: w.Code): w.Code {
    return w.set(sum, w.xor128(w.get(sum), value));
  }

  /** Stores a row's sums at the position, with what was there added to them if asked. */
  #store(target: w.Local, sums: readonly w.Local[], last: boolean): w.Code {
    const { get } = w;
    const address = w.set(this.#source, w.add(get(target), get(this.#position)));
    const order = this.#bits === 16 ? this.#permute(sums, ZIP_LOW, ZIP_HIGH) : [];
    const old = sums.flatMap((sum, i) => this.#addTo(sum, w.load128(get(this.#source), 16 * i)));
    const whole = sums.flatMap((sum, i) => w.store128(get(this.#source), get(sum), 16 * i));
    const start = [...order, ...address, ...w.when(get(ACCUMULATE), old)];
    return last ? [...start, ...this.#storeLast(sums, whole)] : [...start, ...whole];
  }

  #storeLast(sums: readonly w.Local[], whole: w.Code): w.Code {
    const { get, int } = w;
    const part = (sum: w.Local, offset: number): w.Code =>
      w.call(STORE_PART, w.add(get(this.#source), int(offset)), get(sum), w.subtract(get(this.#left), int(offset)));
    const [first, second] = sums as [w.Local, w.Local | undefined];
    const short =
      second === undefined
        ? part(first, 0)
        : w.when(w.less(get(this.#left), int(16)), part(first, 0), [
            ...w.store128(get(this.#source), get(first)),
            ...part(second, 16),
          ]);
    return w.when(w.less(get(this.#left), int(16 * sums.length)), short, whole);
  }
}

/**
 * The program as a WebAssembly module: always the same bytes. The relaxed one leaves positions beyond 15 in swizzles to the
 * machine, which takes one instruction instead of two; there are none such, so the results are the same.
 */
export function assembleProgram(relaxed: boolean): w.Assembled {
  const kernels = ([8, 16] as const).flatMap((bits) =>
    PASSES[bits].map((rows) => new KernelWriter(bits, rows, relaxed).write()),
  );
  return w.assemble([storePart(), isZero(), ...kernels]);
}
