import assert from 'node:assert/strict';
import { equalBytes, type SeededRandom, toHex, utf8, WebdfsError } from '@webdfs/base';
import type { GroupMark } from '../store.ts';
import { checkRow, textOf } from './checks.ts';
import type { CrashPoints } from './crash-points.ts';
import {
  aBlock,
  aBlockGone,
  aBlockId,
  aBlockSize,
  allKeys,
  aNote,
  aRecord,
  aTombstone,
  type Position,
  someBytes,
} from './entries.ts';
import type { Life, Machine } from './machine.ts';
import { type GroupModel, sameEntry, type Sent } from './model.ts';

/** The small file that a history replaces now and then: what it holds, and what it may hold. */
export interface SmallFile {
  known: Uint8Array | undefined;
  sent: Uint8Array[];
}

/** What clients of a store do, at random. */
export class Steps {
  readonly #machine: Machine;
  readonly #random: SeededRandom;
  readonly #points: CrashPoints;
  readonly #groups: readonly GroupModel[];
  file: SmallFile = { known: undefined, sent: [] };

  constructor(options: { machine: Machine; random: SeededRandom; points: CrashPoints; groups: readonly GroupModel[] }) {
    this.#machine = options.machine;
    this.#random = options.random;
    this.#points = options.points;
    this.#groups = options.groups;
  }

  /** Does one random thing; what it answers changes the model. */
  step(life: Life): void {
    const random = this.#random;
    const model = this.#groups[random.below(this.#groups.length)]!;
    if (model.state !== 'here') return;
    const kind = random.below(100);
    if (kind < 42) this.#append(life, model);
    else if (kind < 60) this.#commit(life, model);
    else if (kind < 66) this.#block(life, model);
    else if (kind < 70) this.#cut(life, model);
    else if (kind < 74) this.#mark(life, model);
    else if (kind < 76) this.#drop(life, model);
    else if (kind < 80) this.#learn(life, model);
    else if (kind < 86) this.#compact(life);
    else if (kind < 88) this.#saveFile(life);
    else this.#read(life, model);
  }

  #position(model: GroupModel): Position {
    return {
      group: model.key,
      sequence: model.end + 1,
      ballot: model.ballot,
      commit: model.committed,
      timeMs: this.#machine.clock.now(),
    };
  }

  #append(life: Life, model: GroupModel): void {
    const random = this.#random;
    for (let burst = 1 + random.below(3); burst > 0; burst--) {
      const overtaken = this.#mayOvertake(model);
      const position = this.#position(model);
      const kind = random.below(20);
      const gone = model.blockIds[random.below(Math.max(1, model.blockIds.length))];
      if (kind < 10) this.#send(life, model, { entry: aRecord(random, position) }, overtaken);
      else if (kind < 14) this.#send(life, model, { entry: aTombstone(random, position) }, overtaken);
      else if (kind < 18 || gone === undefined) this.#send(life, model, { entry: aNote(random, position) }, overtaken);
      else this.#send(life, model, { entry: aBlockGone(random, position, gone) }, overtaken);
    }
  }

  /**
   * Now and then the next entry has a new ballot and the place of one that is not committed: that alone voids the rest of
   * the log. Call the result when the entry is answered.
   */
  #mayOvertake(model: GroupModel): (() => void) | undefined {
    const { committed, end } = model;
    if (end === committed || this.#random.below(12) > 0) return undefined;
    const after = committed + this.#random.below(end - committed);
    model.ballot += 1;
    this.#machine.trace(() => `overtake group ${model.key.group} after ${after} below ${model.ballot}`);
    const { victims, settled } = model.cut(after);
    model.overtaken = victims;
    return settled;
  }

  #send(life: Life, model: GroupModel, { entry, bytes }: Omit<Sent, 'answered'>, settled?: () => void): void {
    const sent = model.sent(entry, bytes);
    this.#machine.trace(() => `append ${textOf(entry)}`);
    this.#machine.follow(life, life.store.append(entry), {
      answered: () => {
        this.#machine.trace(() => `durable ${textOf(entry)}`);
        sent.answered = true;
        settled?.();
      },
      refused: (code) => {
        this.#machine.trace(() => `refused ${textOf(entry)}: ${code}`);
        assert.ok(['DISK_FULL', 'STALE_BALLOT', 'NOT_SYNCED', 'NOT_FOUND', 'BUSY'].includes(code), code);
        if (code !== 'STALE_BALLOT') model.refused(sent);
      },
    });
  }

  #commit(life: Life, model: GroupModel): void {
    const { committed, end } = model;
    if (end <= committed) return;
    const upTo = committed + 1 + this.#random.below(end - committed);
    model.committed = upTo;
    model.asked = Math.max(model.asked, upTo);
    this.#machine.trace(() => `commit group ${model.key.group} up to ${upTo}`);
    life.store.commit(model.key, upTo);
  }

  /** Stages a block and appends its entry; now and then gives it up on the way. */
  #block(life: Life, model: GroupModel): void {
    const random = this.#random;
    const id = aBlockId(random);
    const bytes = someBytes(random, aBlockSize(random));
    const givesUp = random.below(6) === 0;
    const { ballot, epoch } = model;
    const work = async (): Promise<void> => {
      const staging = life.store.stage(model.key, id);
      for (let at = 0; at < bytes.length;) {
        const part = bytes.slice(at, at + 1 + random.below(40_000));
        await staging.write(part);
        at += part.length;
        if (givesUp && random.below(3) === 0) return staging.abort();
      }
      if (givesUp) return staging.abort();
      const { size } = await staging.finish();
      assert.equal(size, bytes.length);
      const target = new Uint8Array(random.below(bytes.length + 1));
      if (random.below(3) === 0) {
        await life.store.readStaged(id, 0, target);
        assert.ok(equalBytes(target, bytes.subarray(0, target.length)));
      }
      const goesOn = !life.over && life.disk.running && model.state === 'here';
      if (!goesOn || model.ballot !== ballot || model.epoch !== epoch) return;
      model.blockIds.push(id);
      const overtaken = this.#mayOvertake(model);
      this.#send(life, model, { entry: aBlock(random, this.#position(model), id, bytes), bytes }, overtaken);
    };
    this.#machine.follow(life, work(), {
      answered: () => undefined,
      refused: (code, message) => assert.ok(['DISK_FULL', 'CANCELLED', 'NOT_FOUND'].includes(code), message),
    });
  }

  /** A new ballot adopts a part of the log and voids the rest; now and then the next one adopts some of that after all. */
  #cut(life: Life, model: GroupModel): void {
    const random = this.#random;
    const { overtaken } = model;
    const branch = random.below(2) === 0 && this.#canAdopt(model, overtaken) ? overtaken : undefined;
    const after = branch
      ? branch[0]!.entry.sequence - 1
      : model.committed + random.below(model.end - model.committed + 1);
    const { victims, settled } = model.cut(after);
    model.ballot += 1;
    const { ballot, epoch } = model;
    this.#machine.trace(() => `cut group ${model.key.group} after ${after} below ${ballot}`);
    const again = branch ?? victims.slice(0, random.below(2) === 0 ? random.below(victims.length + 1) : 0);
    const adopt = (): void => {
      if (model.ballot !== ballot || model.epoch !== epoch || model.end !== after || model.state !== 'here') return;
      for (const { entry, bytes } of again) {
        if (model.end === entry.sequence - 1) this.#send(life, model, { entry, ...(bytes && { bytes }) });
      }
    };
    const soon = random.below(2) === 0;
    this.#machine.follow(life, life.store.cut(model.key, after, ballot), {
      answered: () => {
        settled();
        if (!soon) adopt();
      },
      // Void here, but not for good.
      refused: (code) => assert.equal(code, 'DISK_FULL'),
    });
    if (soon) adopt();
  }

  /** Whether a branch goes on from what is here and not committed: ballots of a log never fall. */
  #canAdopt(model: GroupModel, [first]: readonly Sent[]): boolean {
    if (first === undefined) return false;
    const { sequence, ballot } = first.entry;
    const isOpen = sequence > model.committed && sequence <= model.end;
    return isOpen && (model.at(sequence - 1)?.entry.ballot ?? 0) <= ballot;
  }

  #mark(life: Life, model: GroupModel): void {
    const mark: GroupMark = { role: 'member', syncedIn: model.ballot, progress: `${this.#random.below(1000)}` };
    model.marks.push(mark);
    this.#machine.follow(life, life.store.mark(model.key, mark), {
      answered: () => {
        const at = model.marks.indexOf(mark);
        if (at < 0) return;
        model.mark = mark;
        model.marks.splice(0, at + 1);
      },
      refused: (code) => assert.equal(code, 'DISK_FULL'),
    });
  }

  #drop(life: Life, model: GroupModel): void {
    model.state = 'dropping';
    this.#machine.trace(() => `drop group ${model.key.group}`);
    this.#machine.follow(life, life.store.drop(model.key), {
      answered: () => model.forget(),
      refused: (code) => {
        assert.equal(code, 'DISK_FULL');
        model.state = 'here';
      },
    });
  }

  /** A group without past is rebased, and given the entries of a log in any order. */
  #learn(life: Life, model: GroupModel): void {
    const random = this.#random;
    if (model.end > 0 || model.installed.length > 0 || model.mark !== undefined || model.marks.length > 0) return;
    const base = 1 + random.below(8);
    model.state = 'rebasing';
    model.nextBase = base;
    this.#machine.trace(() => `rebase group ${model.key.group} at ${base}`);
    this.#machine.follow(life, life.store.rebase(model.key, base, 1), {
      answered: () => {
        model.startAt(base);
        const timeMs = this.#machine.clock.now();
        const order = Array.from({ length: base }, (_, i) => i + 1).sort(() => random.below(3) - 1);
        for (const sequence of order) {
          const position: Position = { group: model.key, sequence, ballot: 1, commit: 0, timeMs };
          const kind = random.below(10);
          if (kind < 5) this.#install(life, model, aRecord(random, position, 'closes nothing'));
          else if (kind < 6) this.#installBlock(life, model, position);
          else if (kind < 8) this.#install(life, model, aTombstone(random, position));
          else this.#install(life, model, aNote(random, position));
        }
      },
      refused: (code) => {
        assert.equal(code, 'DISK_FULL');
        model.state = 'here';
      },
    });
  }

  #install(life: Life, model: GroupModel, entry: Sent['entry'], bytes?: Uint8Array): void {
    const { epoch } = model;
    const answered = model.install(entry, bytes);
    this.#machine.follow(life, life.store.install(entry), {
      answered: () => {
        assert.equal(model.epoch, epoch, 'what is installed while its group is dropped is refused');
        answered();
      },
      refused: (code) => {
        assert.ok(code === 'DISK_FULL' || (code === 'STALE_BALLOT' && model.state !== 'here') || epoch !== model.epoch);
        model.installing = model.installing.filter((sent) => sent.entry !== entry);
      },
    });
  }

  #installBlock(life: Life, model: GroupModel, position: Position): void {
    const random = this.#random;
    const id = aBlockId(random);
    const bytes = someBytes(random, aBlockSize(random));
    const { epoch } = model;
    const work = async (): Promise<void> => {
      const staging = life.store.stage(model.key, id);
      await staging.write(bytes);
      await staging.finish();
      if (life.over || !life.disk.running || model.state !== 'here' || model.epoch !== epoch) return;
      model.blockIds.push(id);
      this.#install(life, model, aBlock(random, position, id, bytes), bytes);
    };
    this.#machine.follow(life, work(), {
      answered: () => undefined,
      refused: (code, message) => assert.ok(['DISK_FULL', 'CANCELLED', 'NOT_FOUND'].includes(code), message),
    });
  }

  #compact(life: Life): void {
    this.#points.compacting += 1;
    const end = (): void => {
      this.#points.compacting -= 1;
    };
    this.#machine.follow(life, life.store.compact(), {
      answered: () => {
        end();
        this.#points.totals.compactions += 1;
      },
      refused: (code, message) => {
        end();
        assert.equal(code, 'DISK_FULL', message);
      },
    });
  }

  #saveFile(life: Life): void {
    const bytes = utf8(`${this.#random.uint32()}`);
    const file = this.file;
    if (file.sent.length > 0) return;
    file.sent.push(bytes);
    this.#machine.follow(life, life.store.saveFile('map', bytes), {
      answered: () => {
        this.file = { known: bytes, sent: [] };
      },
      refused: (code) => assert.equal(code, 'DISK_FULL'),
    });
  }

  /** Reads a key while everything else goes on: the version that was found, or a newer one, byte by byte. */
  #read(life: Life, model: GroupModel): void {
    const keys = allKeys(model.key);
    const key = keys[this.#random.below(keys.length)]!;
    const row = life.store.find(key);
    if (model.installing.length > 0) return;
    const { commit } = life.store.log(model.key);
    const expected = model.contentAt(commit).records.get(toHex(key));
    assert.equal(row?.sequence, expected?.entry.sequence, 'a read sees what was committed');
    if (row === undefined || expected === undefined) return;
    checkRow(row, expected);
    const work = async (): Promise<void> => {
      try {
        const entry = await life.store.read(row);
        assert.ok(sameEntry(entry, expected.entry), 'a read returns what its row names');
      } catch (error) {
        // What was replaced since may be gone; what was not must be there, wherever compaction has put it.
        if (!(error instanceof WebdfsError) || life.store.find(key)?.sequence === row.sequence) throw error;
      }
    };
    this.#machine.follow(life, work(), { answered: () => undefined });
  }
}
