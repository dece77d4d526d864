import assert from 'node:assert/strict';
import { codeOf, equalBytes, type SeededRandom, toHex, utf8 } from '@webdfs/base';
import { KIND, type LogEntry } from '../entry.ts';
import { SEAL_BYTES } from '../entry-format.ts';
import type { RecordRow, Store } from '../store.ts';
import { textOf } from './checks.ts';
import type { CrashPoints } from './crash-points.ts';
import { allKeys, allNotes } from './entries.ts';
import type { Life, Machine } from './machine.ts';
import { type Content, type GroupModel, sameEntry, type Sent } from './model.ts';

const ROUNDS = 2;
const MOST_FLIPS = 4;

/** What a look at the whole store found. */
interface Findings {
  /** Rows whose bytes are refused. */
  readonly damaged: { model: GroupModel; sent: Sent }[];
  /** Keys that are gone, or show another version than they should. */
  readonly lost: string[];
}

/**
 * The end of a history in which bits of durable bytes turn over: no wrong byte may ever be answered, and nothing may be
 * missing, or be older than it was, without the store saying that it is damaged. What is refused can be repaired.
 */
export class Rot {
  readonly #machine: Machine;
  readonly #random: SeededRandom;
  readonly #groups: readonly GroupModel[];
  readonly #points: CrashPoints;
  readonly #flipped = new Set<object>();
  /** All rows were durable in the index before the first flip, and the index was never lost since. */
  #intact = false;

  constructor(options: { machine: Machine; random: SeededRandom; groups: readonly GroupModel[]; points: CrashPoints }) {
    this.#machine = options.machine;
    this.#random = options.random;
    this.#groups = options.groups;
    this.#points = options.points;
  }

  /** The history before has come to an end: everything it sent is known to be there or not, once it was opened again. */
  async run(settle: (store: Store) => Promise<void>): Promise<void> {
    const before = await this.#begin();
    await settle(before.store);
    for (const model of this.#groups) {
      model.committed = model.asked = model.end;
      before.store.commit(model.key, model.end);
    }
    await this.#machine.drive(Promise.resolve(before.store[Symbol.asyncDispose]()), before);
    this.#intact = true;
    for (let round = 0; round < ROUNDS; round++) {
      this.#machine.crash(this.#random.below(2) === 0 ? 'kill' : 'power');
      const losesIndex = this.#random.below(3) === 0;
      this.#flip(losesIndex);
      if (losesIndex) {
        await this.#machine.loseIndex();
        this.#intact = false;
      }
      await this.#live();
    }
  }

  async #begin(): Promise<Life> {
    const life = await this.#machine.begin(() => undefined, false);
    assert.ok(life !== undefined);
    return life;
  }

  /**
   * At most one bit per file, in all rounds together: a seal is the only proof of the last commit before it, and if both are spoilt, and the index
   * is lost as well, that commit looks like one that was never finished. Nobody can tell; nor can anybody of the last commit
   * to a file that has no seal yet.
   */
  #flip(losesIndex: boolean): void {
    const whole = this.#machine
      .volumes()
      .filter(([, inode]) => !this.#flipped.has(inode) && (!losesIndex || isSealed(inode)));
    const volumes = whole.filter(() => this.#random.below(3) > 0);
    for (const [path, inode] of volumes.slice(0, 1 + this.#random.below(MOST_FLIPS))) {
      const offset = this.#random.below(Math.max(1, inode.durableSize));
      this.#machine.trace(() => `a bit of ${path} turns over at ${offset}`);
      inode.flip(offset, this.#random.below(8));
      this.#flipped.add(inode);
      this.#points.totals.flips += 1;
    }
  }

  async #live(): Promise<void> {
    const life = await this.#begin();
    const { store } = life;
    for (const model of this.#groups) store.commit(model.key, model.end);
    await this.#look(store);
    await store.scrub({ bytesPerSecond: Infinity });
    const { damaged } = await this.#look(store);
    for (let i = 0; i < 4; i++) {
      try {
        if ((await this.#machine.drive(store.compact(), life)) !== true) break;
      } catch (error) {
        assert.equal(codeOf(error), 'CORRUPT');
      }
    }
    await this.#look(store);
    if (this.#random.below(2) === 0) await this.#repair(life, damaged);
    if (this.#random.below(2) === 0) {
      await this.#machine.drive(Promise.resolve(store[Symbol.asyncDispose]()), life);
    } else this.#intact = false;
    this.#points.totals.damaged += store.facts().damaged > 0 ? 1 : 0;
  }

  /** Reads everything there is; what is not as it should be must have been reported. */
  async #look(store: Store): Promise<Findings> {
    const findings: Findings = { damaged: [], lost: [] };
    for (const model of this.#groups) {
      const content = model.contentAt(model.end);
      await this.#lookAtRecords(store, model, content, findings);
      this.#lookAtNotes(store, model, content, findings);
      await this.#lookAtBlocks(store, model, content, findings);
    }
    const { damaged, suspect } = store.facts();
    assert.equal(damaged, (await store.damage()).length);
    if (findings.damaged.length > 0) assert.ok(damaged > 0, 'what was refused was reported');
    if (findings.lost.length > 0) assert.ok(suspect, `lost in silence: ${findings.lost.join(', ')}`);
    if (this.#intact) assert.deepEqual(findings.lost, [], 'an index that was whole knows every key');
    return findings;
  }

  async #lookAtRecords(store: Store, model: GroupModel, { records }: Content, findings: Findings): Promise<void> {
    for (const key of allKeys(model.key)) {
      const row = store.find(key);
      const expected = records.get(toHex(key));
      if (row?.sequence !== expected?.entry.sequence)
        findings.lost.push(`${textOf(expected?.entry)} for ${row?.sequence}`);
      if (row === undefined) continue;
      const entry = await readOr(() => store.read(row));
      if (entry !== undefined) this.#checkEver(model, row, entry);
      else if (expected !== undefined) findings.damaged.push({ model, sent: expected });
    }
  }

  /** Whatever is answered was written once, as it is. */
  #checkEver(model: GroupModel, row: RecordRow, entry: LogEntry): void {
    assert.equal(entry.sequence, row.sequence);
    const written = model.ever.get(toHex(row.key)) ?? [];
    assert.ok(
      written.some((sent) => sameEntry(sent.entry, entry)),
      'wrong bytes were answered',
    );
  }

  #lookAtNotes(store: Store, model: GroupModel, { notes }: Content, findings: Findings): void {
    for (const name of allNotes()) {
      const value = store.note(model.key, name);
      const expected = notes.get(toHex(name));
      const isRight = value === undefined ? expected === undefined : expected !== undefined;
      if (!isRight || (value !== undefined && !equalBytes(value, expected!.entry.body)))
        findings.lost.push(textOf(expected?.entry));
      if (value === undefined) continue;
      const written = model.ever.get(toHex(name)) ?? [];
      assert.ok(
        written.some((sent) => equalBytes(sent.entry.body, value)),
        'a wrong note was answered',
      );
    }
  }

  async #lookAtBlocks(store: Store, model: GroupModel, { blocks }: Content, findings: Findings): Promise<void> {
    for (const id of model.blockIds) {
      const row = store.findBlock(model.key, id);
      const expected = blocks.get(toHex(id));
      if (row?.sequence !== expected?.entry.sequence)
        findings.lost.push(`${textOf(expected?.entry)} for ${row?.sequence}`);
      if (row === undefined) continue;
      const target = new Uint8Array(row.size);
      const read = await readOr(() => store.readBlock(row, 0, target).then(() => target));
      if (read !== undefined) assert.ok(this.#isBlock(model, id, read), 'a wrong block was answered');
      else if (expected !== undefined) findings.damaged.push({ model, sent: expected });
    }
  }

  #isBlock(model: GroupModel, id: Uint8Array, read: Uint8Array): boolean {
    const written = model.ever.get(toHex(id)) ?? [];
    return written.some(({ bytes }) => bytes !== undefined && equalBytes(bytes, read));
  }

  /** What is refused is written anew, as another member would give it; then it is answered. */
  async #repair(life: Life, damaged: Findings['damaged']): Promise<void> {
    const { store } = life;
    for (const { model, sent } of damaged) {
      const { entry, bytes } = sent;
      if (bytes !== undefined) {
        const staging = store.stage(model.key, entry.key);
        await staging.write(bytes);
        await this.#machine.drive(staging.finish(), life);
      }
      await this.#machine.drive(store.install(entry), life);
    }
    for (const { model, sent } of damaged) {
      const { entry, bytes } = sent;
      if (bytes === undefined) {
        const row = store.find(entry.key);
        assert.ok(row !== undefined);
        if (row.sequence === entry.sequence) assert.ok(sameEntry(await store.read(row), entry), 'a repair repairs');
      } else {
        const row = store.findBlock(model.key, entry.key);
        assert.ok(row !== undefined);
        const target = new Uint8Array(row.size);
        await store.readBlock(row, 0, target);
        assert.ok(equalBytes(target, bytes), 'a repair repairs');
      }
    }
  }
}

/** Whether a file ends with what looks like a seal. */
function isSealed(inode: ReturnType<Machine['volumes']>[number][1]): boolean {
  const end = new Uint8Array(SEAL_BYTES);
  inode.read(end, Math.max(0, inode.size - SEAL_BYTES));
  return equalBytes(end.subarray(0, 4), utf8('WDE1')) && end[9] === KIND.SEAL;
}

/** Undefined if the bytes are refused. */
async function readOr<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    assert.equal(codeOf(error), 'CORRUPT');
    return undefined;
  }
}
