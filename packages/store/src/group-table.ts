import { type Ballot, type GroupKey, groupNumber, type Sequence } from '@webdfs/base';
import { isVoid, type MarkContent, packMark, unpackMark, type VoidRange } from './group-mark.ts';
import type { EntryPlace } from './index-rows.ts';
import type { Logged } from './logged.ts';
import type { GroupValue } from './state-rows.ts';
import type { GroupLog, GroupMark } from './store.ts';

const NOWHERE: EntryPlace = { volume: 0, place: 0, entryBytes: 0 };
const NOTHING = new Uint8Array(0);

/** Where a group stands on this node: the `g` row, the entries after its commit point, and what was void. */
export class GroupState implements GroupKey {
  readonly policy: GroupKey['policy'];
  readonly group: GroupKey['group'];
  /** Applied up to here, and the ballot of the entry there. */
  commit: Sequence = 0;
  commitBallot: Ballot = 0;
  /** The highest commit point in a durable head: what a rebuild would know of it. */
  proven: Sequence = 0;
  /** The commit point that was asked for: above `commit` while entries are not durable yet. */
  target: Sequence = 0;
  /** The last durable entry that is not void. */
  last: Sequence = 0;
  lastBallot: Ballot = 0;
  objects = 0;
  blocks = 0;
  bytes = 0;
  digest = 0;
  tenure = 0;
  /** A drop was asked for and is not durable yet: nothing more is taken. */
  ending = false;
  /** Its tenure has ended, and rows of it are left. */
  dropping = false;
  /** The newest mark handed in; what counts for new entries. */
  mark: MarkContent = { number: 0, voids: [] };
  /** The newest mark that is durable, and where. */
  written: MarkContent = { number: 0, voids: [] };
  markPlace: EntryPlace = NOWHERE;
  /** The newest mark was refused: another one must say what it said before anything else is stored. */
  unsaid = false;
  /** Entries that a mark not durable yet voids, with its number: any later mark says the same. */
  leaving: { readonly entry: Logged; readonly number: number }[] = [];
  /** Ascending, without gaps of our making; entries in flight among them. */
  pending: Logged[] = [];
  #markText: Uint8Array = NOTHING;

  constructor(key: GroupKey) {
    this.policy = key.policy;
    this.group = key.group;
  }

  get voids(): readonly VoidRange[] {
    return this.mark.voids;
  }

  isVoid(sequence: Sequence, ballot: Ballot): boolean {
    return this.mark.voids.length > 0 && isVoid(this.mark.voids, sequence, ballot);
  }

  /** The last entry handed in, durable or not. */
  get end(): Sequence {
    return this.pending.at(-1)?.sequence ?? this.commit;
  }

  /** A mark is durable at `place`. */
  setMark(content: MarkContent, place: EntryPlace): void {
    this.written = content;
    if (content.number > this.mark.number) this.mark = content;
    this.#markText = packMark(content);
    this.markPlace = place;
  }

  /** Puts a pending entry in its place; returns the one that it displaces, of the same sequence. */
  addPending(entry: Logged): Logged | undefined {
    const { pending } = this;
    let at = pending.length;
    while (at > 0 && pending[at - 1]!.sequence > entry.sequence) at--;
    const same = pending[at - 1];
    if (same?.sequence === entry.sequence) {
      pending[at - 1] = entry;
      return same;
    }
    pending.splice(at, 0, entry);
    return undefined;
  }

  removePending(entry: Logged): void {
    const at = this.pending.indexOf(entry);
    if (at >= 0) this.pending.splice(at, 1);
  }

  /** Whether a crash would bring entries of this volume back as pending. */
  holds(volume: number): boolean {
    return (
      this.pending.some((entry) => entry.volume === volume) || this.leaving.some(({ entry }) => entry.volume === volume)
    );
  }

  /**
   * Counts entries that have become durable: `last` is the end of the pending entries that are durable without a gap.
   * Returns those that are so for the first time, in order: only now may they be acknowledged.
   */
  advance(): Logged[] {
    const fresh: Logged[] = [];
    this.last = this.commit;
    this.lastBallot = this.commitBallot;
    for (const entry of this.pending) {
      if (!entry.durable) break;
      if (!entry.acknowledged) {
        entry.acknowledged = true;
        fresh.push(entry);
      }
      this.last = entry.sequence;
      this.lastBallot = entry.ballot;
    }
    return fresh;
  }

  /** Whether the group has anything on this node. */
  get exists(): boolean {
    return (
      this.commit > 0 || this.pending.length > 0 || this.written.mark !== undefined || this.objects + this.blocks > 0
    );
  }

  /** Nothing of the group is left but its tenure and the number of its marks. */
  clear(): void {
    this.commit = 0;
    this.commitBallot = 0;
    this.proven = 0;
    this.target = 0;
    this.last = 0;
    this.lastBallot = 0;
    this.objects = 0;
    this.blocks = 0;
    this.bytes = 0;
    this.digest = 0;
    this.pending = [];
  }

  log(): GroupLog {
    const { last, lastBallot, commit, objects, blocks, bytes, digest } = this;
    return { last, lastBallot, commit, objects, blocks, bytes, digest, mark: this.protocolMark };
  }

  get protocolMark(): GroupMark | undefined {
    return this.written.mark;
  }

  get isLearner(): boolean {
    return this.written.mark?.role === 'learner';
  }

  restore(row: GroupValue): void {
    this.last = row.last;
    this.lastBallot = row.lastBallot;
    this.commit = row.commit;
    this.target = row.commit;
    this.commitBallot = row.commitBallot;
    this.proven = row.proven;
    this.objects = row.objects;
    this.blocks = row.blocks;
    this.bytes = row.bytes;
    this.digest = row.digest;
    this.tenure = row.tenure;
    this.dropping = row.dropping;
    this.markPlace = row.markPlace;
    this.#markText = row.markText;
    if (row.markText.length === 0) return;
    this.mark = unpackMark(row.markText);
    this.written = this.mark;
  }

  row(): GroupValue {
    return {
      last: this.last,
      lastBallot: this.lastBallot,
      commit: this.commit,
      commitBallot: this.commitBallot,
      proven: this.proven,
      objects: this.objects,
      blocks: this.blocks,
      bytes: this.bytes,
      digest: this.digest,
      tenure: this.tenure,
      dropping: this.dropping,
      markPlace: this.markPlace,
      markText: this.#markText,
    };
  }
}

/** All groups that have anything here. */
export class GroupTable {
  readonly #groups = new Map<number, GroupState>();
  readonly #touched = new Set<GroupState>();

  get(key: GroupKey): GroupState | undefined {
    return this.#groups.get(groupNumber(key));
  }

  /** The group's state, made if it was never here. */
  need(key: GroupKey): GroupState {
    const number = groupNumber(key);
    let state = this.#groups.get(number);
    if (state === undefined) {
      state = new GroupState(key);
      this.#groups.set(number, state);
    }
    return state;
  }

  all(): IterableIterator<GroupState> {
    return this.#groups.values();
  }

  /** The group's `g` row goes with the next batch. */
  touch(state: GroupState): void {
    this.#touched.add(state);
  }

  /** Groups touched since the last call. */
  takeTouched(): GroupState[] {
    const taken = [...this.#touched];
    this.#touched.clear();
    return taken;
  }
}
