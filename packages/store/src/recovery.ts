import { type Disk, type DiskFile, type Log, toHex, WebdfsError } from '@webdfs/base';
import type { Tables } from './applier.ts';
import { BLOCK_ID_BYTES, KIND } from './entry.ts';
import { bodyFits, keyOf, metaOf, readHead, SEAL_BYTES, sumsOf, unpackSeal } from './entry-format.ts';
import type { Lane } from './lane.ts';
import { isMoved, Logged } from './logged.ts';
import { keepScanned, type Replay } from './replay.ts';
import { type ScannedEntry, type ScannedRot, scanVolume } from './scanner.ts';
import { type VolumeValue, volumeRowKey } from './state-rows.ts';
import { listVolumes, unpackVolumeHead, VOLUME_HEAD_BYTES, type VolumeHead } from './volume-format.ts';
import { Volume } from './volume-table.ts';

export interface RecoveryOptions {
  readonly disk: Disk;
  readonly log: Log;
  readonly storeId: string;
  readonly tables: Tables;
  readonly replay: Replay;
  readonly lanes: { readonly log: Lane; readonly bulk: Lane };
  /** The `v` rows. */
  readonly known: ReadonlyMap<number, VolumeValue>;
  readonly rebuild: boolean;
}

/** A volume of an earlier life. */
interface OldVolume {
  readonly volume: Volume;
  readonly size: number;
  /** Where to scan from. */
  readonly from: number;
  /** The `end` of its seal, or of the seal that an interrupted recovery decided on. */
  readonly end: number | undefined;
  /** The file has its seal. */
  readonly sealed: boolean;
}

/** Shorter files of ours cannot hold an entry: the head is durable before the first one is appended (4.3). */
const EMPTY_FILE_BYTES = VOLUME_HEAD_BYTES;

/**
 * Brings the files of earlier lives into the index and makes them read-only (store, section 6). P9: killed at any step,
 * the next start does the same again with the same result. P10: afterwards every write goes to files of this life.
 */
export class Recovery {
  readonly #options: RecoveryOptions;
  readonly #tables: Tables;
  readonly #old: OldVolume[] = [];
  /** Real entries that only the page cache may hold. */
  readonly #unproven: Logged[] = [];
  /** Files whose entries all have their rows, or were written again. */
  readonly #toClose: { volume: Volume; end: number }[] = [];
  readonly #toSeal: { volume: Volume; end: number }[] = [];
  readonly #rewritten: Logged[] = [];
  scannedBytes = 0;

  constructor(options: RecoveryOptions) {
    this.#options = options;
    this.#tables = options.tables;
  }

  /** What the lanes commit while recovery rewrites the unproven tail. */
  readonly collect = (entries: readonly Logged[]): void => void this.#rewritten.push(...entries);

  /** Steps 3 to 5 and the entries of 6: afterwards every entry has been met. */
  async read(): Promise<void> {
    for (const old of this.#old) await this.#survey(old);
    this.#options.replay.surveyed();
    for (const old of this.#old) await this.#scan(old);
    await this.#rewrite();
    // not before: a batch in between would say that the files end where their tails begin, and nobody would look there again
    for (const { volume, end } of this.#toClose) this.#close(volume, end);
  }

  /** Step 8: the index is durable; the old files are sealed, or go if they never held anything. */
  async sealOld(): Promise<void> {
    const { volumes, overlay } = this.#tables;
    const empty = this.#toSeal.filter(({ end }) => end <= VOLUME_HEAD_BYTES);
    for (const { volume, end } of this.#toSeal) {
      if (end > VOLUME_HEAD_BYTES) await volumes.seal(volume, end);
    }
    await volumes.remove(...empty.map(({ volume }) => volume));
    for (const { volume } of empty) overlay.put(volumeRowKey(volume.id), undefined);
    overlay.touch();
  }

  // ---- step 2 ----

  /** Finds the volumes; their entries can be read afterwards. */
  async findFiles(): Promise<void> {
    const { disk, known, rebuild } = this.#options;
    const { volumes, overlay } = this.#tables;
    const ids = await listVolumes(disk, volumes.folder);
    for (const id of [...ids, ...known.keys()]) volumes.reserve(id);
    let unlinked = false;
    for (const id of ids) {
      if (known.get(id)?.state === 'gone') {
        await disk.unlink(volumes.pathOf(id));
        unlinked = true;
      } else unlinked = (await this.#openFile(id, known.get(id))) || unlinked;
    }
    if (unlinked) await volumes.syncFolder();
    const present = new Set(await listVolumes(disk, volumes.folder));
    for (const [id, row] of known) {
      if (present.has(id)) continue;
      overlay.put(volumeRowKey(id), undefined);
      if (row.state !== 'gone' && row.live > 0 && !rebuild) this.#lost(id, row.live, 'the file is missing');
    }
  }

  #lost(volume: number, length: number, what: string): void {
    this.#tables.damage.report({ volume, place: 0, length, what, headLost: true });
  }

  /** True if the file was unlinked: it never carried an acknowledged byte. */
  async #openFile(id: number, row: VolumeValue | undefined): Promise<boolean> {
    const { disk, storeId, log } = this.#options;
    const { volumes } = this.#tables;
    const path = volumes.pathOf(id);
    const file = await disk.open(path, 'write');
    const size = await file.size();
    const head = await readVolumeHead(file, id, storeId);
    if (head === undefined) {
      await file.close();
      if (size > EMPTY_FILE_BYTES || (row !== undefined && row.applied > VOLUME_HEAD_BYTES)) {
        this.#lost(id, size, 'the head of the volume is unreadable');
        return false;
      }
      log.info('empty volume removed', { volume: id });
      await disk.unlink(path);
      return true;
    }
    const volume = new Volume({ id, lane: head.lane, salt: head.salt, path });
    volume.size = size;
    await this.#found(volume, file, row);
    return false;
  }

  async #found(volume: Volume, file: DiskFile, row: VolumeValue | undefined): Promise<void> {
    const { volumes } = this.#tables;
    const { size } = volume;
    if (row !== undefined) volume.restore(row);
    else volume.horizon = volumes.highest;
    volume.size = size;
    await volumes.adopt(volume, file);
    const sealEnd = await readSeal(file, volume, size);
    // it may stand in the page cache only, and what is decided by it will outlive that
    if (sealEnd !== undefined && row?.state !== 'sealed') await file.sync();
    const end = sealEnd ?? (row?.state === 'sealed' ? row.end : undefined);
    const from = Math.max(VOLUME_HEAD_BYTES, row?.applied ?? 0);
    this.#old.push({ volume, size, from, end, sealed: sealEnd !== undefined });
  }

  // ---- steps 3 and 4 ----

  /** What marks and heads say comes before any entry is judged by it. */
  async #survey(old: OldVolume): Promise<void> {
    await this.#withFile(old, async (source) => {
      const range = { from: old.from, until: old.end ?? old.size, sealed: old.end !== undefined, bodies: false };
      await scanVolume(source, range, (step) => {
        if (step.type === 'entry') this.#options.replay.survey(step.head, step.meta);
      });
    });
  }

  async #scan(old: OldVolume): Promise<void> {
    const { volume, from } = old;
    const until = old.end ?? old.size;
    const isTrusted = old.end !== undefined;
    if (isTrusted) this.#close(volume, until);
    if (isTrusted && from >= until) return this.#sealLater(old, until);
    const gate = new ProofGate(isTrusted ? until : from);
    const outcome = await this.#withFile(old, (source) =>
      scanVolume(source, { from, until, sealed: isTrusted }, async (step) => {
        if (step.type === 'rot') this.#rot(volume, step);
        else await this.#met(volume, gate, step);
        await this.#tables.overlay.pace();
      }),
    );
    this.scannedBytes += outcome.end - from;
    const proven = isTrusted ? until : Math.max(outcome.durable, from);
    for (const entry of gate.release(proven)) await this.#replay(volume, entry);
    this.#unproven.push(...gate.rest());
    volume.reached(proven);
    this.#toClose.push({ volume, end: proven });
    this.#sealLater(old, proven);
  }

  /** P10: nothing more is written here. */
  #close(volume: Volume, end: number): void {
    volume.state = 'sealed';
    volume.end = end;
    volume.durable = end;
    this.#tables.volumes.touch(volume);
  }

  #sealLater(old: OldVolume, end: number): void {
    if (!old.sealed || end <= VOLUME_HEAD_BYTES) this.#toSeal.push({ volume: old.volume, end });
  }

  async #met(volume: Volume, gate: ProofGate, step: ScannedEntry): Promise<void> {
    gate.hold(keepScanned(step), step.head.durable);
    for (const entry of gate.release(0)) await this.#replay(volume, entry);
  }

  async #replay(volume: Volume, entry: Logged): Promise<void> {
    volume.entries += 1;
    const waits = this.#options.replay.meet(entry);
    if (waits !== undefined) await waits;
    if (!entry.settled) volume.unsettled.push(entry);
    volume.reached(entry.place + entry.entryBytes);
  }

  #rot(volume: Volume, { place, until }: ScannedRot): void {
    const what = 'unreadable';
    this.#tables.damage.report({ volume: volume.id, place, length: until - place, what, headLost: true });
  }

  async #withFile<T>(
    { volume }: OldVolume,
    work: (source: { file: DiskFile; volume: number; salt: number }) => Promise<T>,
  ): Promise<T> {
    const { volumes } = this.#tables;
    const file = await volumes.acquire(volume);
    try {
      return await work({ file, volume: volume.id, salt: volume.salt });
    } finally {
      volumes.release(volume);
    }
  }

  // ---- step 5 ----

  async #rewrite(): Promise<void> {
    const { log, bulk } = this.#options.lanes;
    let failure: unknown;
    for (const entry of this.#worthRewriting()) {
      const copy = await this.#readWhole(entry);
      if (copy === undefined) continue;
      copy.answer = {
        durable: () => undefined,
        failed: (error) => {
          failure ??= error;
        },
      };
      const isBulk = entry.kind === KIND.PIECE || entry.kind === KIND.BLOCK;
      (isBulk ? bulk : log).push(copy);
    }
    await log.drain();
    await bulk.drain();
    if (failure !== undefined) throw new WebdfsError('DISK_FAILED', 'the tail cannot be rewritten', { cause: failure });
    for (const entry of this.#rewritten) {
      const waits = this.#options.replay.meet(entry);
      if (waits !== undefined) await waits;
    }
    if (this.#rewritten.length > 0) this.#raiseHorizons();
  }

  /** What was written again may be an older copy of what a tombstone took away, in a file younger than that. */
  #raiseHorizons(): void {
    const { volumes } = this.#tables;
    for (const volume of volumes.all()) {
      volume.horizon = volumes.highest;
      volumes.touch(volume);
    }
  }

  /** Without duplicates, marks that prove nothing now, copies that nothing names, and pieces that no BLOCK names. */
  #worthRewriting(): Logged[] {
    const stagingOf = (entry: Logged): string => toHex(entry.key.subarray(0, BLOCK_ID_BYTES + 4));
    const named = new Set<string>();
    const pending = [...this.#tables.groups.all()].flatMap((group) => group.pending);
    for (const entry of [...pending, ...this.#unproven]) if (entry.kind === KIND.BLOCK) named.add(stagingOf(entry));
    const seen = new Set<string>();
    return this.#unproven.filter((entry) => {
      if (entry.kind === KIND.SYNC_MARK || entry.kind === KIND.SEAL || entry.damaged) return false;
      // if no row names a copy, its source is still here; without an index, who knows
      if (isMoved(entry) && !this.#options.rebuild && !this.#options.replay.isNamed(entry)) return false;
      if (entry.kind === KIND.PIECE && !named.has(stagingOf(entry))) return false;
      const { kind, policy, group, tenure, sequence, ballot } = entry;
      const name = `${kind} ${policy} ${group} ${tenure} ${sequence} ${ballot} ${toHex(entry.key)}`;
      if (seen.has(name)) return false;
      seen.add(name);
      return true;
    });
  }

  async #readWhole(entry: Logged): Promise<Logged | undefined> {
    const { volumes } = this.#tables;
    const volume = volumes.need(entry.volume);
    const file = await volumes.acquire(volume);
    try {
      const bytes = Buffer.from(await readPart(file, entry.place, entry.entryBytes));
      const head = readHead(bytes, 0, { volume: volume.id, salt: volume.salt, place: entry.place });
      if (head === undefined) return undefined;
      const body = bytes.subarray(head.headBytes, head.headBytes + head.bodyBytes);
      const sums = sumsOf(bytes, 0, head);
      if (!bodyFits(body, sums)) return undefined;
      return new Logged(head, { key: keyOf(bytes, 0, head), meta: metaOf(bytes, 0, head), body, sums });
    } finally {
      volumes.release(volume);
    }
  }
}

/** Holds back entries of an unsealed file until a later head proves that they are durable. */
class ProofGate {
  #held: Logged[] = [];
  #next = 0;
  #proven: number;

  constructor(proven: number) {
    this.#proven = proven;
  }

  hold(entry: Logged, durable: number): void {
    this.#held.push(entry);
    this.#proven = Math.max(this.#proven, durable);
  }

  /** Entries that begin below what is proven by now, or below `proven`. */
  *release(proven: number): Generator<Logged> {
    this.#proven = Math.max(this.#proven, proven);
    while (this.#next < this.#held.length && this.#held[this.#next]!.place < this.#proven) {
      yield this.#held[this.#next++]!;
    }
    if (this.#next > 1_000) {
      this.#held = this.#held.slice(this.#next);
      this.#next = 0;
    }
  }

  rest(): Logged[] {
    return this.#held.slice(this.#next);
  }
}

async function readPart(file: DiskFile, offset: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  const count = await file.read(bytes, offset);
  return bytes.subarray(0, count);
}

/** @throws NEWER_FORMAT; then the file is closed */
async function readVolumeHead(file: DiskFile, id: number, storeId: string): Promise<VolumeHead | undefined> {
  try {
    return unpackVolumeHead(await readPart(file, 0, VOLUME_HEAD_BYTES), id, storeId);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The `end` of the file's seal; undefined if it has none. */
async function readSeal(file: DiskFile, volume: Volume, size: number): Promise<number | undefined> {
  const place = size - SEAL_BYTES;
  if (place < VOLUME_HEAD_BYTES || place % 8 !== 0) return undefined;
  const bytes = await readPart(file, place, SEAL_BYTES);
  return unpackSeal(bytes, { volume: volume.id, salt: volume.salt, place });
}
