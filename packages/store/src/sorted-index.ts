import {
  compareBytes,
  crc32c,
  type Disk,
  type DiskFile,
  EMPTY,
  type Random,
  Reader,
  readWhole,
  replaceWhole,
  WebdfsError,
  Writer,
  writeFully,
} from '@webdfs/base';
import type { Row, RowChange, RowIndex, RowIndexHouse, RowRange } from './row-index.ts';

const ROWS = 'rows';
const SALT_BYTES = 8;

/** Rows in the order of their keys. */
class SortedRows {
  readonly #rows: Row[] = [];

  /** Position of the first row whose key is not below `key`. */
  position(key: Uint8Array): number {
    let low = 0;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareBytes(this.#rows[middle]!.key, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    const row = this.#rows[this.position(key)];
    return row !== undefined && compareBytes(row.key, key) === 0 ? row.value : undefined;
  }

  apply(changes: readonly RowChange[]): void {
    for (const { key, value } of changes) {
      const at = this.position(key);
      const row = this.#rows[at];
      const found = row !== undefined && compareBytes(row.key, key) === 0;
      if (value === undefined) {
        if (found) this.#rows.splice(at, 1);
      } else this.#rows.splice(at, found ? 1 : 0, { key, value });
    }
  }

  range({ gte, gt, lt, limit, reverse = false }: RowRange): Row[] {
    let first = gte === undefined ? 0 : this.position(gte);
    if (gt !== undefined) {
      const after = this.position(gt);
      const row = this.#rows[after];
      first = Math.max(first, row !== undefined && compareBytes(row.key, gt) === 0 ? after + 1 : after);
    }
    const end = lt === undefined ? this.#rows.length : this.position(lt);
    if (reverse) return this.#rows.slice(Math.max(first, end - limit), Math.max(first, end)).toReversed();
    return this.#rows.slice(first, Math.max(first, Math.min(end, first + limit)));
  }
}

/**
 * A batch in the log:
 *
 *     offset  size  field
 *          0     4  bytes    of what follows the checksum
 *          4     4  checksum CRC-32C of it, continued from that of the file's salt and the batch's number
 *          8     n  per change: u16 and key | u8 1 and u32 and value, or u8 0
 */
function encodeBatch(salt: Uint8Array, number: number, changes: readonly RowChange[]): Uint8Array {
  const body = new Writer();
  for (const { key, value } of changes) {
    body.short(key).u8(value === undefined ? 0 : 1);
    if (value !== undefined) body.long(value);
  }
  const bytes = body.take();
  return new Writer()
    .u32(bytes.length)
    .u32(crc32c(bytes, seedFor(salt, number)))
    .raw(bytes)
    .take();
}

function seedFor(salt: Uint8Array, number: number): number {
  return crc32c(new Writer().u53(number).take(), crc32c(salt));
}

function decodeBatch(body: Uint8Array): RowChange[] {
  const reader = new Reader(body);
  const changes: RowChange[] = [];
  while (reader.left > 0) {
    const key = reader.short().slice();
    changes.push(reader.u8() === 0 ? { key } : { key, value: reader.long().slice() });
  }
  return changes;
}

/** The rows of a log up to its torn tail. */
function replay(log: Uint8Array): SortedRows {
  const rows = new SortedRows();
  const salt = log.subarray(0, SALT_BYTES);
  const reader = new Reader(log, Math.min(SALT_BYTES, log.length));
  for (let number = 0; reader.left >= 8; number++) {
    const bytes = reader.u32();
    const checksum = reader.u32();
    if (bytes > reader.left) break;
    const body = reader.raw(bytes);
    if (crc32c(body, seedFor(salt, number)) !== checksum) break;
    rows.apply(decodeBatch(body));
  }
  return rows;
}

function lost(path: string, error: unknown): WebdfsError {
  return new WebdfsError('CORRUPT', `index ${path} is lost`, { cause: error });
}

class SortedIndex implements RowIndex {
  readonly #path: string;
  readonly #rows: SortedRows;
  readonly #salt: Uint8Array;
  readonly #file: DiskFile;
  /** Where the next batch goes, and its number. */
  #end: number;
  #number = 1;
  #last: Promise<void> = Promise.resolve();

  constructor(options: { path: string; rows: SortedRows; salt: Uint8Array; file: DiskFile; end: number }) {
    this.#path = options.path;
    this.#rows = options.rows;
    this.#salt = options.salt;
    this.#file = options.file;
    this.#end = options.end;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rows.get(key)?.slice();
  }

  batch(changes: readonly RowChange[], options: { readonly sync?: boolean } = {}): Promise<void> {
    this.#last = this.#last.then(() => this.#write(changes, options.sync === true));
    // Whoever does not wait for this batch learns of its failure from the next.
    this.#last.catch(() => undefined);
    return this.#last;
  }

  async #write(changes: readonly RowChange[], sync: boolean): Promise<void> {
    const bytes = encodeBatch(this.#salt, this.#number++, changes);
    try {
      await writeFully(this.#file, [bytes], this.#end);
      this.#end += bytes.length;
      if (sync) await this.#file.datasync();
    } catch (error) {
      throw lost(this.#path, error);
    }
    this.#rows.apply(changes);
  }

  range(range: RowRange): Promise<Row[]> {
    const rows = this.#rows.range(range);
    return Promise.resolve(rows.map(({ key, value }) => ({ key: key.slice(), value: value.slice() })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#file.close();
  }
}

/**
 * The house for simulation: rows in memory, and a log of batches on a `Disk`, written anew when it is opened.
 *
 * The log makes LevelDB's promise come out of what the disk does: a crash tears its tail, and the batches before the tear
 * are a prefix that holds the last synced one. An insertion moves all rows after it, so it is for thousands, not millions.
 */
export class SortedIndexHouse implements RowIndexHouse {
  readonly #disk: Disk;
  readonly #random: Random;

  constructor(options: { disk: Disk; random: Random }) {
    this.#disk = options.disk;
    this.#random = options.random;
  }

  async open(path: string): Promise<RowIndex> {
    try {
      await this.#disk.makeFolder(path);
      const before = (await this.#disk.exists(`${path}/${ROWS}`))
        ? await readWhole(this.#disk, `${path}/${ROWS}`)
        : EMPTY;
      const rows = replay(before);
      const salt = this.#random.bytes(SALT_BYTES);
      const whole = new Writer()
        .raw(salt)
        .raw(encodeBatch(salt, 0, rows.range({ limit: Infinity })))
        .take();
      await replaceWhole(this.#disk, path, ROWS, whole);
      const file = await this.#disk.open(`${path}/${ROWS}`, 'write');
      return new SortedIndex({ path, rows, salt, file, end: whole.length });
    } catch (error) {
      throw lost(path, error);
    }
  }

  async remove(path: string): Promise<void> {
    await this.#disk.removeFolder(path);
  }

  async rename(source: string, target: string): Promise<void> {
    await this.#disk.rename(source, target);
  }
}
