import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { copyFile, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

/** A real file tree, made from what the machine has, and what it takes to compare two of them. */

export const TREE_FILES = 2_000;
export const TREE_BYTES = 500 * 1024 * 1024;
const SOURCES = ['/usr/share', '/usr/lib', '/usr/bin'];
const LARGEST = 64 * 1024 * 1024;

async function* regularFiles(folder: string): AsyncGenerator<{ path: string; size: number }> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* regularFiles(path);
    else if (entry.isFile()) {
      const facts = await stat(path).catch(() => undefined);
      if (facts !== undefined) yield { path, size: facts.size };
    }
  }
}

/** Copies regular files until there are at least `files` of them and `bytes` in all. */
export async function makeTree(
  target: string,
  wanted: { files: number; bytes: number } = { files: TREE_FILES, bytes: TREE_BYTES },
): Promise<{ files: number; bytes: number }> {
  let files = 0;
  let bytes = 0;
  for (const source of SOURCES) {
    for await (const { path, size } of regularFiles(source)) {
      const enough = files >= wanted.files && bytes >= wanted.bytes;
      if (enough) return { files, bytes };
      if (size > LARGEST) continue;
      // once there are files enough, only those that bring bytes; before, mostly small ones
      if (files >= wanted.files ? size < 256 * 1024 : size > 2 * 1024 * 1024) continue;
      const copy = join(target, relative('/usr', path));
      await mkdir(dirname(copy), { recursive: true });
      await copyFile(path, copy);
      files++;
      bytes += size;
    }
  }
  throw new Error(`the machine has only ${files} fitting files of ${bytes} bytes`);
}

export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Path below `folder` → SHA-256, of all regular files. */
export async function digestTree(folder: string): Promise<Map<string, string>> {
  const digests = new Map<string, string>();
  for await (const { path } of regularFiles(folder)) digests.set(relative(folder, path), await sha256Of(path));
  return digests;
}
