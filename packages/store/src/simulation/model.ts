import assert from 'node:assert/strict';
import { equalBytes, type GroupKey, toHex } from '@webdfs/base';
import { closesOf } from '../closes.ts';
import { FLAG, KIND, type LogEntry } from '../entry.ts';
import type { GroupMark } from '../store.ts';

/** An entry that was handed to the store, and what is known of it. */
export interface Sent {
  readonly entry: LogEntry;
  /** Of a BLOCK: its bytes. */
  readonly bytes?: Uint8Array;
  answered: boolean;
}

/** What a group's applied entries amount to. */
export interface Content {
  readonly records: Map<string, Sent>;
  readonly blocks: Map<string, Sent>;
  readonly notes: Map<string, Sent>;
}

const NUMBERS = [
  'kind',
  'flags',
  'sequence',
  'ballot',
  'timeMs',
  'timeCount',
  'hashHigh',
  'hashLow',
  'policy',
  'group',
] as const satisfies (keyof LogEntry)[];

/** Whether two entries are one; what their authors knew of the commit point may differ. */
export function sameEntry(a: LogEntry, b: LogEntry): boolean {
  const sameBytes = equalBytes(a.key, b.key) && equalBytes(a.meta, b.meta) && equalBytes(a.body, b.body);
  const sameSums = a.sums.length === b.sums.length && a.sums.every((sum, i) => sum === b.sums[i]);
  return sameBytes && sameSums && NUMBERS.every((name) => a[name] === b[name]);
}

/**
 * What a group may and must hold, by what was answered.
 *
 * `log` are the entries that count, from `base + 1` on; what came before is `ground`. `doubtful` are entries that a cut under
 * way voids: until it is answered they may come back after a crash. What is in none of them must never be seen.
 */
export class GroupModel {
  readonly key: GroupKey;
  base = 0;
  ground: Content = { records: new Map(), blocks: new Map(), notes: new Map() };
  log: Sent[] = [];
  /** Entries before `base`, by sequence: an index that was lost may not know that they were committed. */
  readonly past = new Map<number, Sent>();
  doubtful: Sent[] = [];
  /** What was overtaken last: another branch of the log, that a takeover may adopt yet. */
  overtaken: readonly Sent[] = [];
  /** Given to a learner: answered, and not. */
  installed: Sent[] = [];
  installing: Sent[] = [];
  /** The commit point asked for, and the highest that ever was. */
  committed = 0;
  asked = 0;
  ballot = 1;
  /** Marks: the last answered, and those sent since. */
  mark: GroupMark | undefined;
  marks: GroupMark[] = [];
  /** Everything ever handed in, by key: bytes that are none of these are wrong. */
  readonly ever = new Map<string, Sent[]>();
  /** Ids of blocks ever named here. */
  readonly blockIds: Uint8Array[] = [];
  state: 'here' | 'dropping' | 'rebasing' = 'here';
  /** Of a rebase that is under way. */
  nextBase = 0;
  /** How often the group was dropped or rebased. */
  epoch = 0;

  constructor(key: GroupKey) {
    this.key = key;
  }

  get end(): number {
    return this.base + this.log.length;
  }

  at(sequence: number): Sent | undefined {
    return this.log[sequence - this.base - 1];
  }

  /** Up to here every entry was answered. */
  get answeredEnd(): number {
    const open = this.log.findIndex((sent) => !sent.answered);
    return open < 0 ? this.end : this.base + open;
  }

  sent(entry: LogEntry, bytes?: Uint8Array): Sent {
    const sent: Sent = { entry, answered: false, ...(bytes === undefined ? {} : { bytes }) };
    assert.equal(entry.sequence, this.end + 1);
    this.#remember(sent);
    this.log.push(sent);
    return sent;
  }

  #remember(sent: Sent): void {
    const name = toHex(sent.entry.key);
    this.ever.set(name, [...(this.ever.get(name) ?? []), sent]);
  }

  /** The store has refused it: it is not stored, nor is what was sent behind it. */
  refused(sent: Sent): void {
    const at = this.log.indexOf(sent);
    if (at >= 0) this.log.splice(at);
    // Its place is taken by another entry only under another ballot.
    this.ballot += 1;
    this.doubtful = this.doubtful.filter((other) => other !== sent);
  }

  /** A cut begins; call `settled` when it is answered. */
  cut(after: number): { readonly victims: readonly Sent[]; readonly settled: () => void } {
    const victims = this.log.splice(Math.max(after, this.committed, this.base) - this.base);
    this.doubtful.push(...victims);
    const settled = (): void => {
      this.doubtful = this.doubtful.filter((sent) => !victims.includes(sent));
    };
    return { victims, settled };
  }

  /** A learner is given an entry; call the result when it is answered. */
  install(entry: LogEntry, bytes?: Uint8Array): () => void {
    const sent: Sent = { entry, answered: false, ...(bytes === undefined ? {} : { bytes }) };
    this.#remember(sent);
    this.installing.push(sent);
    return () => {
      sent.answered = true;
      this.installing = this.installing.filter((other) => other !== sent);
      this.installed.push(sent);
    };
  }

  /** The group was dropped. */
  forget(): void {
    this.startAt(0);
    this.mark = undefined;
    this.marks = [];
    this.state = 'here';
  }

  /** A log without past begins after `sequence`. */
  startAt(sequence: number): void {
    this.epoch += 1;
    this.past.clear();
    this.base = sequence;
    this.committed = sequence;
    this.asked = sequence;
    this.ground = { records: new Map(), blocks: new Map(), notes: new Map() };
    this.log = [];
    this.doubtful = [];
    this.overtaken = [];
    this.installed = [];
    this.installing = [];
    this.state = 'here';
  }

  /** What entries up to `commit` amount to. */
  contentAt(commit: number): Content {
    const content: Content = {
      records: new Map(this.ground.records),
      blocks: new Map(this.ground.blocks),
      notes: new Map(this.ground.notes),
    };
    for (const sent of this.installed.toSorted((a, b) => a.entry.sequence - b.entry.sequence)) applyTo(content, sent);
    for (const sent of this.log.slice(0, Math.max(0, commit - this.base))) applyTo(content, sent);
    return content;
  }

  /** After a crash this entry waits in its place, whatever was to come there. */
  cameBack(sent: Sent): void {
    const at = sent.entry.sequence - this.base - 1;
    if (at < 0) return;
    sent.answered = true;
    this.log[at] = sent;
  }

  /** After a crash: `commit` is what was applied, `pending` what follows it. */
  adopt(commit: number, pending: readonly Sent[]): void {
    this.log = [...this.log.slice(0, Math.max(0, commit - this.base)), ...pending];
    for (const sent of this.log) sent.answered = true;
    this.doubtful = [];
    this.overtaken = [];
    this.committed = Math.min(Math.max(commit, this.committed), this.end);
  }

  /** The log is forgotten up to `commit`, but not what it amounts to. */
  startOver(commit: number, content: Content, pending: readonly Sent[]): void {
    for (const sent of this.log) this.past.set(sent.entry.sequence, sent);
    this.ground = content;
    this.installed = [];
    this.base = commit;
    this.log = [];
    this.adopt(commit, pending);
    this.committed = Math.min(this.committed, this.end);
  }
}

function applyTo({ records, blocks, notes }: Content, sent: Sent): void {
  const { entry } = sent;
  const name = toHex(entry.key);
  switch (entry.kind) {
    case KIND.RECORD: {
      records.set(name, sent);
      const closed = closesOf(entry);
      if (closed !== undefined) records.delete(toHex(closed));
      break;
    }
    case KIND.TOMBSTONE:
      records.delete(name);
      break;
    case KIND.BLOCK:
      blocks.set(name, sent);
      break;
    case KIND.BLOCK_GONE:
      blocks.delete(name);
      break;
    case KIND.GROUP_ENTRY:
      if ((entry.flags & FLAG.DELETE_MARKER) !== 0) notes.delete(name);
      else notes.set(name, sent);
      break;
  }
}
