/**
 * The few words of WebAssembly that the kernels are written in: each function answers the bytes of one instruction, with its
 * operands before it (`add(get(a), int(16))`), so that a kernel reads like an expression and assembles to the same bytes always.
 * Numbers are opcodes of the WebAssembly core specification 2.0, chapter 5; relaxed SIMD is from its 2023 proposal.
 */
export type Code = readonly number[];

/** A local variable or parameter of the function being written, by index. */
export type Local = number;

export const TYPE = { i32: 0x7f, v128: 0x7b } as const;
export type ValueType = (typeof TYPE)[keyof typeof TYPE];

/** LEB128, unsigned. */
export function unsigned(value: number): number[] {
  const bytes: number[] = [];
  for (let left = value; ; left >>>= 7) {
    if (left < 0x80) return [...bytes, left];
    bytes.push((left & 0x7f) | 0x80);
  }
}

/** LEB128, signed. */
function signed(value: number): number[] {
  const bytes: number[] = [];
  for (let left = value; ; left >>= 7) {
    const byte = left & 0x7f;
    if ((left >> 7 === 0 && byte < 0x40) || (left >> 7 === -1 && byte >= 0x40)) return [...bytes, byte];
    bytes.push(byte | 0x80);
  }
}

const simd = (opcode: number, ...rest: Code): number[] => [0xfd, ...unsigned(opcode), ...rest];
/** Alignment is a hint that no engine needs: 0 promises nothing. */
const at = (offset: number): number[] => [0, ...unsigned(offset)];

export const get = (local: Local): Code => [0x20, ...unsigned(local)];
export const set = (local: Local, value: Code): Code => [...value, 0x21, ...unsigned(local)];
export const int = (value: number): Code => [0x41, ...signed(value)];

export const add = (a: Code, b: Code): Code => [...a, ...b, 0x6a];
export const subtract = (a: Code, b: Code): Code => [...a, ...b, 0x6b];
export const and = (a: Code, b: Code): Code => [...a, ...b, 0x71];
export const shiftLeft = (a: Code, b: Code): Code => [...a, ...b, 0x74];
export const equal = (a: Code, b: Code): Code => [...a, ...b, 0x46];
/** 1 if a < b, unsigned. */
export const less = (a: Code, b: Code): Code => [...a, ...b, 0x49];
export const load = (address: Code, offset = 0): Code => [...address, 0x28, ...at(offset)];
export const load8 = (address: Code, offset = 0): Code => [...address, 0x2d, ...at(offset)];

export const load128 = (address: Code, offset = 0): Code => [...address, ...simd(0x00, ...at(offset))];
export const store128 = (address: Code, value: Code, offset = 0): Code => [
  ...address,
  ...value,
  ...simd(0x0b, ...at(offset)),
];
/** Stores the first 1, 2, 4 or 8 bytes of `value`. */
export function storeFirst(count: 1 | 2 | 4 | 8, address: Code, value: Code): Code {
  const opcode = { 1: 0x58, 2: 0x59, 4: 0x5a, 8: 0x5b }[count];
  return [...address, ...value, ...simd(opcode, ...at(0), 0)];
}
export const constant128 = (bytes: Code): Code => simd(0x0c, ...bytes);
export const splat8 = (byte: number): Code => constant128(Array.from({ length: 16 }, () => byte));
export const xor128 = (a: Code, b: Code): Code => [...a, ...b, ...simd(0x51)];
export const and128 = (a: Code, b: Code): Code => [...a, ...b, ...simd(0x4e)];
export const or128 = (a: Code, b: Code): Code => [...a, ...b, ...simd(0x50)];
/** 1 if any bit is set. */
export const anyTrue = (a: Code): Code => [...a, ...simd(0x53)];
export const addBytes = (a: Code, b: Code): Code => [...a, ...b, ...simd(0x6e)];
/** In each byte 0xff if a < b, signed. */
export const lessBytes = (a: Code, b: Code): Code => [...a, ...b, ...simd(0x25)];
/** Each half-word shifted right by `bits`, zeros from the left. */
export const shiftRight16 = (a: Code, bits: number): Code => [...a, ...int(bits), ...simd(0x8d)];
/** Bytes of a (0..15) and b (16..31) by constant position. */
export const shuffle = (a: Code, b: Code, lanes: Code): Code => [...a, ...b, ...simd(0x0d, ...lanes)];
/** Bytes of `table` by position; 0 where a position exceeds 15. */
export const swizzle = (table: Code, positions: Code): Code => [...table, ...positions, ...simd(0x0e)];
/** The same for positions up to 15; what it answers for others is the machine's choice. */
export const relaxedSwizzle = (table: Code, positions: Code): Code => [...table, ...positions, ...simd(0x100)];

export const call = (index: number, ...parameters: readonly Code[]): Code => [
  ...parameters.flat(),
  0x10,
  ...unsigned(index),
];
export const when = (condition: Code, then: Code, otherwise: Code = []): Code => [
  ...condition,
  0x04,
  0x40,
  ...then,
  ...(otherwise.length === 0 ? [] : [0x05, ...otherwise]),
  0x0b,
];
/** Repeats `body` until `over` is 1, which is asked first. */
export const until = (over: Code, body: Code): Code => [
  0x02,
  0x40,
  0x03,
  0x40,
  ...over,
  0x0d,
  0x01,
  ...body,
  0x0c,
  0x00,
  0x0b,
  0x0b,
];
export const giveBack = (value: Code): Code => [...value, 0x0f];

export interface FunctionSource {
  /** Exported under this name; absent: internal. */
  readonly name?: string;
  readonly parameters: readonly ValueType[];
  readonly results: readonly ValueType[];
  readonly locals: readonly ValueType[];
  readonly body: Code;
}

function section(id: number, items: readonly Code[]): Code {
  const bytes = [...unsigned(items.length), ...items.flat()];
  return [id, ...unsigned(bytes.length), ...bytes];
}

function name(text: string): Code {
  return [...unsigned(text.length), ...Array.from(text, (letter) => letter.charCodeAt(0))];
}

function bodyOf({ locals, body }: FunctionSource): Code {
  const bytes = [...unsigned(locals.length), ...locals.flatMap((type) => [1, type]), ...body, 0x0b];
  return [...unsigned(bytes.length), ...bytes];
}

/** Pages of 64 KiB that a memory may have at most: 4 GiB. */
const MOST_PAGES = 65_536;

/** `\0asm`, version 1. */
const MAGIC = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];

export interface Assembled {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Which byte says whether the memory is shared: 1 no, 3 yes. Nothing else differs. */
  readonly sharedFlagAt: number;
}

/** A module of these functions over one imported memory, `memory.block`, that is not shared. */
export function assemble(functions: readonly FunctionSource[]): Assembled {
  const limits = [0x01, 1, ...unsigned(MOST_PAGES)];
  const exported = functions.flatMap((source, index) =>
    source.name === undefined ? [] : [[...name(source.name), 0x00, ...unsigned(index)]],
  );
  const types = functions.map(({ parameters, results }) => [
    0x60,
    ...unsigned(parameters.length),
    ...parameters,
    ...unsigned(results.length),
    ...results,
  ]);
  const head = [
    ...MAGIC,
    ...section(1, types),
    ...section(2, [[...name('memory'), ...name('block'), 0x02, ...limits]]),
  ];
  const bytes = Uint8Array.from([
    ...head,
    ...section(
      3,
      functions.map((_, index) => unsigned(index)),
    ),
    ...section(7, exported),
    ...section(10, functions.map(bodyOf)),
  ]);
  return { bytes, sharedFlagAt: head.length - limits.length };
}
