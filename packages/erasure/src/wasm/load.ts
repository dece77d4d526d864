import { RELAXED_BINARY, SHARED_FLAG_AT, SIMD_BINARY } from './binary.ts';

/** A kernel function of the program; program.ts tells what it does with these. */
export type ProgramFunction = (
  descriptors: number,
  ones: number,
  count: number,
  targets: number,
  length: number,
  accumulate: number,
) => void;

export interface Program {
  readonly is_zero: (address: number, length: number) => number;
  readonly [name: string]: ProgramFunction | ((address: number, length: number) => number);
}

/** The little that is used of it: the compiler's own declarations come with those of the whole browser. */
declare const WebAssembly:
  | undefined
  | {
      readonly Memory: new (limits: { initial: number; maximum: number; shared: boolean }) => WasmMemory;
      readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
      readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
      validate(bytes: Uint8Array<ArrayBuffer>): boolean;
    };

export interface WasmMemory {
  readonly buffer: ArrayBufferLike;
}

export const PAGE_BYTES = 65_536;

/** Limits of the imported memory, as a byte of the module: bounded, or bounded and shared. */
const FLAGS = { own: 0x01, shared: 0x03 } as const;

function bytesOf(program: 'relaxed' | 'simd', shared: boolean): Uint8Array<ArrayBuffer> {
  const text = atob(program === 'relaxed' ? RELAXED_BINARY : SIMD_BINARY);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  bytes[SHARED_FLAG_AT] = shared ? FLAGS.shared : FLAGS.own;
  return bytes;
}

/** What this runtime can run: relaxed SIMD is in V8 since 11.4 and Firefox 146, not in Safari. */
export function supports(program: 'relaxed' | 'simd'): boolean {
  return typeof WebAssembly === 'object' && WebAssembly.validate(bytesOf(program, false));
}

/** Memory of at least `bytes`; it never grows, for that would detach all views of it. */
export function makeMemory(bytes: number, shared: boolean): WasmMemory {
  const pages = Math.ceil(bytes / PAGE_BYTES);
  return new WebAssembly!.Memory({ initial: pages, maximum: pages, shared });
}

/** What was compiled serves every kernel of this thread: a module has no state. */
const modules = new Map<string, object>();

export function loadProgram(program: 'relaxed' | 'simd', memory: WasmMemory): Program {
  const shared = typeof SharedArrayBuffer === 'function' && memory.buffer instanceof SharedArrayBuffer;
  const key = `${program}, ${shared}`;
  const module = modules.get(key) ?? new WebAssembly!.Module(bytesOf(program, shared));
  modules.set(key, module);
  return new WebAssembly!.Instance(module, { memory: { block: memory } }).exports as Program;
}
