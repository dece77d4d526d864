import { writeFileSync } from 'node:fs';
import { assembleProgram } from '../packages/erasure/src/wasm/program.ts';

/**
 * Writes the kernels of `erasure` as WebAssembly, assembled from `wasm/program.ts`. As text, because a module of text loads the
 * same way in Node.js, in a worker and in every browser and bundler, without a file to find or to fetch.
 */
function linesOf(bytes: Uint8Array): string {
  const lines = Buffer.from(bytes)
    .toString('base64')
    .match(/.{1,110}/g)!;
  return lines.map((line) => `  '${line}'`).join(' +\n');
}

const simd = assembleProgram(false);
const relaxed = assembleProgram(true);
if (simd.sharedFlagAt !== relaxed.sharedFlagAt) throw new Error('the two programs have unlike heads');

const path = new URL('../packages/erasure/src/wasm/binary.ts', import.meta.url);
writeFileSync(
  path,
  `/** Written by \`npm run build:wasm\` from program.ts; a test compares the two. WebAssembly modules in base64. */
export const SIMD_BINARY =
${linesOf(simd.bytes)};

export const RELAXED_BINARY =
${linesOf(relaxed.bytes)};

/** Offset of the byte that says whether the memory is shared: 1 no, 3 yes. */
export const SHARED_FLAG_AT = ${simd.sharedFlagAt};
`,
);
console.log(`simd ${simd.bytes.length} bytes, relaxed ${relaxed.bytes.length} bytes`);
