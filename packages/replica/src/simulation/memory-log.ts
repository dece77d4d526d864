import { assert, type Ballot, type GroupKey, type Sequence } from '@webdfs/base';
import { type GroupLog, type GroupMark, KIND, type LogEntry, type RecordRow } from '@webdfs/store';

type Operation =
  | { readonly type: 'append'; readonly entry: LogEntry }
  | { readonly type: 'cut'; readonly after: Sequence; readonly below: Ballot }
  | { readonly type: 'mark'; readonly mark: GroupMark };

/** What a sync made durable. */
export type Settled = { readonly type: 'durable'; readonly upTo: Sequence } | { readonly type: 'marked' };

/**
 * One group of one node's store, as far as replication needs it, in memory: what was not synced is lost in a crash, and the
 * commit point that is remembered may lag.
 */
export class MemoryLog {
  readonly key: GroupKey;
  /** On the disk; entry i has sequence i + 1. */
  entries: LogEntry[] = [];
  #queue: Operation[] = [];
  #mark: GroupMark | undefined;
  commit: Sequence = 0;
  #commitOnDisk: Sequence = 0;
  readonly #applied = new Map<string, LogEntry>();

  constructor(key: GroupKey) {
    this.key = key;
  }

  get last(): Sequence {
    return this.entries.length;
  }

  get isIdle(): boolean {
    return this.#queue.length === 0;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  push(operation: Operation): void {
    this.#queue.push(operation);
  }

  /** The first `count` operations reach the disk. */
  sync(count: number): Settled[] {
    const settled: Settled[] = [];
    for (const operation of this.#queue.splice(0, count)) settled.push(this.#perform(operation));
    this.#commitOnDisk = this.commit;
    return settled;
  }

  #perform(operation: Operation): Settled {
    if (operation.type === 'mark') {
      this.#mark = operation.mark;
      return { type: 'marked' };
    }
    if (operation.type === 'cut') {
      assert(operation.after >= this.commit, 'nothing committed is cut');
      const kept = this.entries.findIndex((entry, i) => i >= operation.after && entry.ballot < operation.below);
      if (kept >= 0) this.entries.length = kept;
      return { type: 'durable', upTo: operation.after };
    }
    const { entry } = operation;
    assert(entry.sequence === this.last + 1, 'a log has no gaps');
    this.entries.push(entry);
    return { type: 'durable', upTo: entry.sequence };
  }

  /** The machine dies: of what was not synced the first `survivors` operations happen to be there, the rest is gone. */
  crash(survivors: number, remembered: number): void {
    for (const operation of this.#queue.splice(0, survivors)) this.#perform(operation);
    this.#queue = [];
    this.commit = this.#commitOnDisk - Math.floor(remembered * (this.#commitOnDisk - this.#leastCommit()));
    this.#applied.clear();
    this.#apply(0, this.commit);
  }

  /** What the entries on the disk say of the commit point. */
  #leastCommit(): Sequence {
    let least = 0;
    for (const entry of this.entries) least = Math.max(least, Math.min(entry.commit, this.last));
    return Math.min(least, this.#commitOnDisk);
  }

  /** Broken on purpose: entries that were said to be durable are gone. */
  forget(count: number): void {
    this.entries.length = Math.max(0, this.entries.length - count);
    this.commit = Math.min(this.commit, this.last);
    this.#commitOnDisk = this.commit;
    this.#applied.clear();
    this.#apply(0, this.commit);
  }

  /** A new disk. */
  wipe(): void {
    this.entries = [];
    this.#queue = [];
    this.#mark = undefined;
    this.commit = 0;
    this.#commitOnDisk = 0;
    this.#applied.clear();
  }

  /** A learner begins: what was here is replaced by the first `base` entries of another log. */
  replace(entries: readonly LogEntry[]): void {
    this.wipe();
    this.#mark = { role: 'learner', syncedIn: 0 };
    this.entries = [...entries];
    this.commit = entries.length;
    this.#commitOnDisk = this.commit;
    this.#apply(0, this.commit);
  }

  apply(upTo: Sequence): void {
    assert(upTo <= this.last, 'only what is durable is applied');
    this.#apply(this.commit, upTo);
    this.commit = upTo;
  }

  #apply(after: Sequence, upTo: Sequence): void {
    for (let sequence = after + 1; sequence <= upTo; sequence++) {
      const entry = this.entries[sequence - 1]!;
      this.#applied.set(Buffer.from(entry.key).toString('latin1'), entry);
    }
  }

  /** The newest committed entry of a key, tombstones too. */
  newest(key: Uint8Array): LogEntry | undefined {
    return this.#applied.get(Buffer.from(key).toString('latin1'));
  }

  find(key: Uint8Array): RecordRow | undefined {
    const entry = this.newest(key);
    if (entry === undefined || entry.kind !== KIND.RECORD) return undefined;
    const { sequence, flags, timeMs: modifiedMs, meta } = entry;
    const place = { volume: 0, place: 0, entryBytes: 0 };
    return { ...this.key, key, sequence, flags, modifiedMs, summary: meta.subarray(16, 48), ...place };
  }

  pending(): LogEntry[] {
    return this.entries.slice(this.commit);
  }

  log(): GroupLog {
    const lastBallot = this.entries.at(-1)?.ballot ?? 0;
    const { last, commit } = this;
    return { last, lastBallot, commit, objects: 0, blocks: 0, bytes: 0, digest: 0, mark: this.#mark };
  }
}
