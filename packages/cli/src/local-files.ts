import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { makeFolders, WebdfsError } from '@webdfs/base';

/** The local side of `put -r` and `get -r`. */

export interface LocalFile {
  readonly path: string;
  /** Below the folder that was named, with `/` between folders. */
  readonly name: string;
  readonly size: number;
}

/** All regular files below a folder, in the order of names; links and devices are left out. */
export async function* filesBelow(folder: string, prefix = ''): AsyncGenerator<LocalFile> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path, `${prefix}${entry.name}/`);
    else if (entry.isFile()) yield { path, name: prefix + entry.name, size: (await stat(path)).size };
  }
}

export function readFileStream(path: string): AsyncIterable<Uint8Array> {
  return createReadStream(path, { highWaterMark: 1024 * 1024 });
}

/**
 * Writes a file so that it is there whole or not at all: under another name first.
 *
 * @throws WebdfsError INCOMPLETE_BODY if the source ends early
 */
export async function writeFileStream(
  path: string,
  source: AsyncIterable<Uint8Array>,
  options: { size: number | undefined; onBytes: (count: number) => void; signal: AbortSignal },
): Promise<void> {
  await makeFolders(dirname(path));
  const temporary = `${path}.webdfs-part`;
  let written = 0;
  try {
    await pipeline(
      source,
      async function* (chunks: AsyncIterable<Uint8Array>) {
        for await (const chunk of chunks) {
          written += chunk.length;
          options.onBytes(chunk.length);
          yield chunk;
        }
      },
      createWriteStream(temporary),
      { signal: options.signal },
    );
    if (options.size !== undefined && written !== options.size) {
      throw new WebdfsError('INCOMPLETE_BODY', `${path}: got ${written} of ${options.size} bytes`);
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Where a key of a folder goes on this disk.
 *
 * @throws WebdfsError INVALID if the key would leave the folder or cannot be a file's name here
 */
export function pathInside(folder: string, name: string): string {
  const base = resolve(folder);
  const path = resolve(base, name);
  if (!path.startsWith(base + sep) || name.endsWith('/') || name.includes('\0') || name.split('/').includes('..')) {
    throw new WebdfsError('INVALID', `key ${JSON.stringify(name)} cannot be a file below ${folder}: get it by name`);
  }
  return path;
}
