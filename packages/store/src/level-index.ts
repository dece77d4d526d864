import { rename, rm } from 'node:fs/promises';
import { compareBytes, WebdfsError } from '@webdfs/base';
import { ClassicLevel } from 'classic-level';
import type { Row, RowChange, RowIndex, RowIndexHouse, RowRange } from './row-index.ts';

type Level = ClassicLevel<Uint8Array, Uint8Array>;

/** Rows fetched from LevelDB in one go. */
const ROWS_PER_STEP = 1000;

/**
 * What was measured for our rows (docs/decisions/0003-store-index.md): hashes do not compress; few large files and a
 * large write buffer keep write amplification near 1 KB per put; the cache holds filters and the hot blocks.
 */
const OPTIONS = {
  keyEncoding: 'view',
  valueEncoding: 'view',
  compression: false,
  writeBufferSize: 16 * 1024 * 1024,
  cacheSize: 32 * 1024 * 1024,
  maxFileSize: 32 * 1024 * 1024,
  maxOpenFiles: 1000,
  blockSize: 4096,
} as const;

/** Whatever LevelDB throws means one thing: this index is lost. But one that another process holds is not ours to remove. */
function lost(action: string, path: string, error: unknown): WebdfsError {
  const cause = (error as { cause?: { code?: string } }).cause;
  if (cause?.code === 'LEVEL_LOCKED') return new WebdfsError('LOCKED', `index ${path} is in use`, { cause: error });
  return new WebdfsError('CORRUPT', `index ${path}: ${action} failed`, { cause: error });
}

/** The tighter of the two lower bounds: of a range that has both, LevelDB's binding would see only one. */
function lowerBound({ gte, gt }: RowRange): { gte?: Uint8Array; gt?: Uint8Array } {
  if (gte === undefined) return gt === undefined ? {} : { gt };
  return gt === undefined || compareBytes(gte, gt) > 0 ? { gte } : { gt };
}

class LevelIndex implements RowIndex {
  readonly #level: Level;
  /** The last batch handed in: the next waits for it, because LevelDB's threads would not keep their order. */
  #last: Promise<void> = Promise.resolve();

  constructor(level: Level) {
    this.#level = level;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    try {
      return this.#level.getSync(key);
    } catch (error) {
      throw lost('get', this.#level.location, error);
    }
  }

  batch(changes: readonly RowChange[], options: { readonly sync?: boolean } = {}): Promise<void> {
    // After one that failed none follows: the rows of a crash are a prefix of the batches.
    this.#last = this.#last.then(() => this.#write(changes, options.sync === true));
    // Whoever does not wait for this batch learns of its failure from the next.
    this.#last.catch(() => undefined);
    return this.#last;
  }

  async #write(changes: readonly RowChange[], sync: boolean): Promise<void> {
    const operations = changes.map(({ key, value }) =>
      value === undefined ? { type: 'del' as const, key } : { type: 'put' as const, key, value },
    );
    try {
      // Never a chained batch: those keep their native memory until the garbage collector comes by.
      await this.#level.batch(operations, { sync });
    } catch (error) {
      throw lost('batch', this.#level.location, error);
    }
  }

  async range(range: RowRange): Promise<Row[]> {
    const { lt, limit, reverse = false } = range;
    const rows: Row[] = [];
    try {
      const iterator = this.#level.iterator({
        ...lowerBound(range),
        ...(lt === undefined ? {} : { lt }),
        limit,
        reverse,
      });
      try {
        while (rows.length < limit) {
          const step = await iterator.nextv(Math.min(ROWS_PER_STEP, limit - rows.length));
          if (step.length === 0) break;
          for (const [key, value] of step) rows.push({ key, value });
        }
      } finally {
        await iterator.close();
      }
    } catch (error) {
      throw lost('range', this.#level.location, error);
    }
    return rows;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#level.close();
  }
}

/**
 * The house that nodes use: LevelDB, one folder per index.
 *
 * Its files bypass the `Disk` seam, and it checks no block checksums on reads: a row is a hint, the entry it names decides.
 * Errors: CORRUPT whatever LevelDB complains of (delete the index and rebuild it, never repair it); LOCKED if another
 * process has it open.
 */
export class LevelIndexHouse implements RowIndexHouse {
  async open(path: string): Promise<RowIndex> {
    const level: Level = new ClassicLevel(path, OPTIONS);
    try {
      await level.open();
    } catch (error) {
      throw lost('open', path, error);
    }
    return new LevelIndex(level);
  }

  async remove(path: string): Promise<void> {
    await rm(path, { recursive: true, force: true });
  }

  async rename(source: string, target: string): Promise<void> {
    await rename(source, target);
  }
}
