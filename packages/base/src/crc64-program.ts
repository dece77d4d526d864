/*
 * A WebAssembly module assembled by hand: its one function takes sixteen bytes a step through sixteen tables, then the rest byte
 * by byte. Numbers are the opcodes of the WebAssembly core specification, chapter 5.
 */
const I32 = 0x7f;
const I64 = 0x7e;
const OP = {
  block: [0x02, 0x40],
  loop: [0x03, 0x40],
  end: [0x0b],
  again: [0x0c, 0x00],
  leaveIf: [0x0d, 0x01],
  and32: [0x71],
  add32: [0x6a],
  subtract32: [0x6b],
  less32: [0x49],
  equal32: [0x46],
  shiftLeft32: [0x74],
  xor32: [0x73],
  xor64: [0x85],
  shiftRight64: [0x88],
  narrow: [0xa7],
} as const;

/** Locals: the parameters, and the second word of a step. */
const [FROM, TO, CRC, SECOND] = [0, 1, 2, 3];

/** LEB128, unsigned; of a signed constant too while its value is small. */
function number(value: number): number[] {
  const bytes: number[] = [];
  for (let left = value; ; left >>>= 7) {
    if (left < 0x80) return [...bytes, left];
    bytes.push((left & 0x7f) | 0x80);
  }
}

const get = (local: number): number[] => [0x20, local];
const set = (local: number): number[] => [0x21, local];
/** An i32 constant; signed LEB128 needs a second byte from 64 on. */
const int = (value: number): number[] => [0x41, ...(value < 64 ? [value] : [(value & 0x7f) | 0x80, value >>> 7])];
const long = (value: number): number[] => [0x42, value];
const load64 = (offset: number): number[] => [0x29, 0x00, ...number(offset)];
const load8 = [0x2d, 0x00, 0x00];

/** The word of table `table` for byte `byte` of a local. */
function lookUp(table: number, local: number, byte: number): number[] {
  const shifted = byte === 0 ? get(local) : [...get(local), ...long(byte * 8), ...OP.shiftRight64];
  return [...shifted, ...OP.narrow, ...int(255), ...OP.and32, ...int(3), ...OP.shiftLeft32, ...load64(table * 2_048)];
}

function sixteenBytes(): number[] {
  const first = [...get(CRC), ...get(FROM), ...load64(0), ...OP.xor64, ...set(CRC)];
  const second = [...get(FROM), ...load64(8), ...set(SECOND)];
  const words = Array.from({ length: 16 }, (_, byte) => [
    ...lookUp(15 - byte, byte < 8 ? CRC : SECOND, byte % 8),
    ...(byte === 0 ? [] : OP.xor64),
  ]);
  return [...first, ...second, ...words.flat(), ...set(CRC), ...get(FROM), ...int(16), ...OP.add32, ...set(FROM)];
}

function oneByte(): number[] {
  const index = [...get(CRC), ...OP.narrow, ...get(FROM), ...load8, ...OP.xor32, ...int(255), ...OP.and32];
  const word = [...index, ...int(3), ...OP.shiftLeft32, ...load64(0)];
  const rest = [...get(CRC), ...long(8), ...OP.shiftRight64];
  return [...word, ...rest, ...OP.xor64, ...set(CRC), ...get(FROM), ...int(1), ...OP.add32, ...set(FROM)];
}

/** Repeats `step` until `over` leaves a 1. */
function until(over: number[], step: number[]): number[] {
  return [...OP.block, ...OP.loop, ...over, ...OP.leaveIf, ...step, ...OP.again, ...OP.end, ...OP.end];
}

function section(id: number, bytes: number[]): number[] {
  return [id, ...number(bytes.length), ...bytes];
}

function name(text: string): number[] {
  return [text.length, ...Buffer.from(text, 'latin1')];
}

/** `\0asm`, version 1. */
const MAGIC = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];

function moduleBytes(): Uint8Array<ArrayBuffer> {
  const fewerThan16 = [...get(TO), ...get(FROM), ...OP.subtract32, ...int(16), ...OP.less32];
  const none = [...get(FROM), ...get(TO), ...OP.equal32];
  const code = [...until(fewerThan16, sixteenBytes()), ...until(none, oneByte()), ...get(CRC), ...OP.end];
  const body = [1, 1, I64, ...code]; // one group of locals: one i64
  return Uint8Array.from([
    ...MAGIC,
    ...section(1, [1, 0x60, 3, I32, I32, I64, 1, I64]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0x00, 2]), // two pages of 64 KiB
    ...section(7, [2, ...name('memory'), 0x02, 0, ...name('advance'), 0x00, 0]),
    ...section(10, [1, ...number(body.length), ...body]),
  ]);
}

/** The little that is used of it: the compiler's own declarations come with those of the whole browser. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

export interface Crc64Program {
  readonly memory: { readonly buffer: ArrayBuffer };
  /** The CRC of the bytes [from, to) of the memory after `crc`, both before the final inversion. */
  readonly advance: (from: number, to: number, crc: bigint) => bigint;
}

/** Loads the program; crc64.ts tells what its memory holds. */
export function loadCrc64Program(): Crc64Program {
  return new WebAssembly.Instance(new WebAssembly.Module(moduleBytes())).exports as Crc64Program;
}
