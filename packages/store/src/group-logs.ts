import { type Ballot, concat, EMPTY, equalBytes, type GroupKey, type Sequence, WebdfsError } from '@webdfs/base';
import { type Applier, type Tables, unpackBlockBody } from './applier.ts';
import { BLOCK_ID_BYTES, KIND, type LogEntry } from './entry.ts';
import { checkEntry, isPut } from './entry-check.ts';
import { STORED_FLAG } from './entry-format.ts';
import { addVoid, type MarkContent, packMark, reviveFrom, type VoidRange } from './group-mark.ts';
import type { GroupState } from './group-table.ts';
import { blockRowKey, blockState, orderRowKey, rowBuffer, unpackOrder } from './index-rows.ts';
import type { Lane } from './lane.ts';
import { groupMark, isInstalled, Logged, NO_SUMS } from './logged.ts';
import type { RequestRows } from './request-rows.ts';
import type { StagedBlock } from './staged-table.ts';
import { noteRowKey, pendingRowKey, unpackNote } from './state-rows.ts';
import type { GroupMark } from './store.ts';

export interface GroupLogsOptions {
  readonly tables: Tables;
  readonly applier: Applier;
  readonly requests: RequestRows;
  readonly log: Lane;
  readonly bulk: Lane;
  /** @throws DISK_FULL if puts are refused now */
  readonly checkSpace: () => void;
}

/** What goes with a mark beside what it says. */
interface MarkOptions {
  /** If not the group's own. */
  readonly tenure?: number | undefined;
  /** In the step that makes it durable, and in the step that refuses it: what comes between must not see it half done. */
  readonly onDurable?: (() => void) | undefined;
  readonly onRefused?: (() => void) | undefined;
}

/**
 * The logs of all groups: what is appended becomes pending when it is durable, is applied when the commit point passes it,
 * or is void for good when a cut says so.
 */
export class GroupLogs {
  readonly #options: GroupLogsOptions;
  readonly #tables: Tables;
  readonly #applier: Applier;

  constructor(options: GroupLogsOptions) {
    this.#options = options;
    this.#tables = options.tables;
    this.#applier = options.applier;
  }

  append(entry: LogEntry): Promise<void> {
    try {
      checkEntry(entry);
      const group = this.#usable(entry);
      if (entry.sequence <= group.commit) return Promise.resolve();
      const same = group.pending.find((other) => other.sequence === entry.sequence);
      if (same?.ballot === entry.ballot) return this.#repeat(same, entry);
      this.#checkOrder(group, entry, same);
      const staged = this.#stagedFor(entry);
      if (isPut(entry)) this.#options.checkSpace();
      if (same !== undefined) this.#displace(group, entry);
      const mark = this.#owedMark(group, entry);
      const logged = this.#logged(group, entry, staged, 0);
      group.addPending(logged);
      logged.done = new Promise((resolve, reject) => {
        logged.answer = {
          durable: resolve,
          failed: (error) => {
            this.#refused(group, logged, error);
            reject(error);
          },
        };
      });
      this.#pushAfter(mark, group, logged);
      return logged.done;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Two entries of one sequence and ballot are one entry: anything else is a breach of the protocol. */
  #repeat(same: Logged, entry: LogEntry): Promise<void> {
    if (same.kind !== entry.kind || !equalBytes(same.meta, entry.meta)) {
      throw new WebdfsError('CONFLICT', `another entry ${entry.sequence} of ballot ${entry.ballot} is pending`);
    }
    return same.done ?? Promise.resolve();
  }

  #usable(key: GroupKey): GroupState {
    const group = this.#tables.groups.need(key);
    if (group.ending || group.dropping) throw new WebdfsError('BUSY', `group ${key.group} is being dropped`);
    return group;
  }

  #checkOrder(group: GroupState, entry: LogEntry, same: Logged | undefined): void {
    const { end } = group;
    if (entry.sequence > end + 1) {
      throw new WebdfsError('NOT_SYNCED', `entry ${entry.sequence} would follow ${end}`, { details: { last: end } });
    }
    if (same !== undefined && same.ballot > entry.ballot) {
      throw new WebdfsError('STALE_BALLOT', `entry ${entry.sequence} is here with ballot ${same.ballot}`);
    }
  }

  /** The staging that a BLOCK names. */
  #stagedFor(entry: LogEntry): StagedBlock | undefined {
    if (entry.kind !== KIND.BLOCK) return undefined;
    const staged = this.#tables.staged.finished(entry.key);
    if (staged?.whole === undefined) throw new WebdfsError('NOT_FOUND', 'the block has not been staged here');
    const { size, sums } = unpackBlockBody(entry.body);
    const { whole } = staged;
    if (whole.size !== size || whole.sums.length !== sums.length || sums.some((sum, i) => sum !== whole.sums[i])) {
      throw new WebdfsError('CHECKSUM_MISMATCH', `the staged block has ${whole.size} bytes or other sums`);
    }
    return staged;
  }

  /**
   * The entry as it is stored. Its head tells of no commit point beyond what is applied here: a rebuild takes that for
   * proof that everything up to it is, or was, in the volumes, and another lane may still owe some of it.
   */
  #logged(group: GroupState, entry: LogEntry, staged: StagedBlock | undefined, flags: number): Logged {
    const fields = { ...entry, commit: Math.min(entry.commit, group.commit) };
    const more = { flags, tenure: group.tenure };
    if (staged === undefined) return new Logged(fields, entry, more);
    staged.named += 1;
    const generation = rowBuffer(4);
    generation.writeUInt32BE(staged.generation);
    return new Logged(fields, { ...entry, key: concat([entry.key, generation]) }, more);
  }

  #laneOf(kind: number): Lane {
    return kind === KIND.BLOCK ? this.#options.bulk : this.#options.log;
  }

  /** Another log has an entry of a higher ballot at this place: what was here from there on is not of it. */
  #displace(group: GroupState, entry: LogEntry): void {
    void this.#void(group, entry.sequence - 1, entry.ballot).catch(() => undefined);
  }

  /**
   * The mark that must be durable before this entry, if it is not already on its way in the entry's own lane: one that
   * takes it out of the void, for an adopted log has it after all, or says again what others are void in its place.
   */
  #owedMark(group: GroupState, entry: LogEntry): Promise<void> | undefined {
    const { sequence, ballot, kind } = entry;
    if (group.isVoid(sequence, ballot)) {
      return this.#writeMark(group, { voids: reviveFrom(group.voids, sequence, ballot) });
    }
    const isAhead = group.leaving.length > 0 && this.#laneOf(kind) !== this.#options.log;
    return group.unsaid || isAhead ? this.#writeMark(group, {}) : undefined;
  }

  /** A lane keeps the order of mark and entry, two do not. */
  #pushAfter(mark: Promise<void> | undefined, group: GroupState, entry: Logged): void {
    const lane = this.#laneOf(entry.kind);
    if (mark === undefined) return lane.push(entry);
    if (lane === this.#options.log) {
      lane.push(entry);
      return void mark.catch(() => undefined);
    }
    mark.then(
      () => group.pending.includes(entry) && lane.push(entry),
      (error: unknown) => {
        const at = group.pending.indexOf(entry);
        if (at >= 0) this.#voidAfter(group, entry.sequence - 1, group.pending.slice(at), error);
      },
    );
  }

  /**
   * The lane refused an entry. Those behind it in the same lane are refused with it; those in the other lane would leave
   * a gap, so they are void.
   */
  #refused(group: GroupState, entry: Logged, error: unknown): void {
    if (!group.pending.includes(entry)) return;
    this.#forget(group, entry, error, false);
    const lane = this.#laneOf(entry.kind);
    const victims = group.pending.filter(
      (other) => other.sequence > entry.sequence && this.#laneOf(other.kind) !== lane,
    );
    this.#voidAfter(group, entry.sequence, victims, error);
  }

  /** What waits behind an entry that is not to be stored is not either. */
  #voidAfter(group: GroupState, after: Sequence, victims: readonly Logged[], error: unknown): void {
    const upTo = victims.at(-1)?.sequence;
    if (upTo === undefined) return;
    const below = Math.max(...victims.map((victim) => victim.ballot)) + 1;
    void this.#voidAll(group, victims, error, { after, upTo, below }).catch(() => undefined);
  }

  /** Takes a pending entry out, for good; its author hears why. */
  #forget(group: GroupState, entry: Logged, error: unknown, tell: boolean): void {
    this.#takeOut(group, entry, error, tell);
    this.#letGo(entry);
  }

  /** In memory only: the index may not lose it before it is durably void. */
  #takeOut(group: GroupState, entry: Logged, error: unknown, tell: boolean): void {
    group.removePending(entry);
    entry.voiding = true;
    if (entry.kind === KIND.BLOCK) this.#unname(entry);
    group.advance();
    this.#touch(group);
    if (tell) entry.answer?.failed(error);
    entry.answer = undefined;
  }

  #letGo(entry: Logged): void {
    entry.voiding = false;
    if (entry.queued) this.#tables.overlay.put(pendingRowKey(entry), undefined);
    if (entry.durable) this.#applier.settle(entry);
  }

  /** Voids these pending entries; the mark that says so is on its way when this returns. */
  #voidAll(
    group: GroupState,
    victims: readonly Logged[],
    error: unknown,
    range: VoidRange,
    change: Partial<MarkContent> = {},
    options: MarkOptions = {},
  ): Promise<void> {
    for (const victim of victims) this.#takeOut(group, victim, error, true);
    const number = group.mark.number + 1;
    for (const entry of victims) group.leaving.push({ entry, number });
    return this.#writeMark(group, { ...change, voids: addVoid(group.voids, range) }, options);
  }

  /** A mark is durable. One before it may have been refused: this one repeats what that said. */
  #marked(group: GroupState, number: number): void {
    if (group.leaving.length === 0) return;
    const gone = group.leaving.filter((leaving) => leaving.number <= number);
    group.leaving = group.leaving.filter((leaving) => leaving.number > number);
    for (const { entry } of gone) this.#letGo(entry);
  }

  #unname(entry: Logged): void {
    const generation = entry.key.subarray(BLOCK_ID_BYTES);
    const number = new DataView(generation.buffer, generation.byteOffset, 4).getUint32(0);
    const staged = this.#tables.staged.get(entry.key.subarray(0, BLOCK_ID_BYTES), number);
    if (staged !== undefined) staged.named -= 1;
  }

  #touch(group: GroupState): void {
    this.#tables.groups.touch(group);
    this.#tables.overlay.touch();
  }

  /** Voids pending entries above `after` of ballots below `below`; the mark that says so is on its way when this returns. */
  #void(group: GroupState, after: Sequence, below: Ballot): Promise<void> {
    const victims = group.pending.filter((entry) => entry.sequence > after && entry.ballot < below);
    const upTo = victims.at(-1)?.sequence;
    if (upTo === undefined) return Promise.resolve();
    const error = new WebdfsError('STALE_BALLOT', `entries after ${after} of ballots below ${below} are void`);
    return this.#voidAll(group, victims, error, { after, upTo, below });
  }

  /** Remembers that entries are void which a scan has met. */
  async voidRanges(group: GroupState, ranges: readonly VoidRange[]): Promise<void> {
    await this.#writeMark(group, { voids: ranges.reduce(addVoid, group.voids) });
  }

  async cut(key: GroupKey, after: Sequence, below: Ballot): Promise<void> {
    const group = this.#usable(key);
    await this.#void(group, Math.max(after, group.commit), below);
  }

  /** Writes the group's next mark; what it says holds in memory at once, unless it is the first of another tenure. */
  #writeMark(group: GroupState, change: Partial<MarkContent>, options: MarkOptions = {}): Promise<void> {
    const { tenure = group.tenure, onDurable, onRefused } = options;
    const number = group.mark.number + 1;
    const { dropped: _, ...kept } = group.mark;
    const content: MarkContent = { ...kept, ...change, number };
    const meta = packMark(content);
    const isOurs = tenure === group.tenure;
    group.mark = isOurs ? content : { ...group.mark, number };
    group.unsaid &&= !isOurs;
    // the first word of a new tenure must not tell of the commit point of the one before
    const commit = isOurs ? group.commit : 0;
    const { policy, group: id } = group;
    const entry = groupMark({ policy, group: id, tenure, commit }, number, this.#tables.clock.now(), meta);
    return new Promise((resolve, reject) => {
      const durable = (): void => {
        this.#marked(group, number);
        onDurable?.();
        resolve();
      };
      const failed = (error: unknown): void => {
        group.unsaid ||= isOurs;
        onRefused?.();
        reject(error);
      };
      entry.answer = { durable, failed };
      this.#options.log.push(entry);
    });
  }

  async mark(key: GroupKey, mark: GroupMark): Promise<void> {
    await this.#writeMark(this.#usable(key), { mark });
  }

  commit(key: GroupKey, upTo: Sequence): void {
    const group = this.#tables.groups.need(key);
    if (upTo <= group.target) return;
    group.target = upTo;
    this.#applyReady(group);
  }

  /** What one commit of a lane has made durable. */
  committed(entries: readonly Logged[]): void {
    const touched = new Set<GroupState>();
    for (const entry of entries) {
      if (entry.kind === KIND.GROUP_MARK) {
        this.#proved(this.#tables.groups.need(entry), entry);
        this.#applier.applyMark(entry);
      } else if (entry.kind === KIND.SYNC_MARK) this.#applier.settle(entry);
      else if (entry.kind !== KIND.PIECE) {
        this.#durable(entry, touched);
        continue;
      }
      entry.answer?.durable();
    }
    for (const group of touched) {
      for (const entry of group.advance()) entry.answer?.durable();
      this.#touch(group);
      this.#applyReady(group);
    }
  }

  #durable(entry: Logged, touched: Set<GroupState>): void {
    const group = this.#tables.groups.need(entry);
    if (entry.tenure < group.tenure) {
      // those that were pending hear of it where the tenure ends
      this.#applier.settle(entry);
      if (isInstalled(entry)) entry.answer?.failed(wasDropped(group));
      return;
    }
    if (entry.kind !== KIND.BLOCK && entry.kind !== KIND.GROUP_ENTRY) {
      // read from disk if anybody asks: a group without a quorum may keep its tail for long
      entry.body = EMPTY;
      entry.sums = NO_SUMS;
    }
    if (isInstalled(entry)) {
      this.#applier.apply(entry);
      this.#options.requests.note(entry);
      entry.answer?.durable();
      return;
    }
    this.#proved(group, entry);
    if (entry.answer !== undefined) touched.add(group);
    else if (!entry.voiding) this.#applier.settle(entry);
  }

  #proved(group: GroupState, entry: Logged): void {
    if (entry.tenure === group.tenure) group.proven = Math.max(group.proven, entry.commit);
  }

  /**
   * Writes down commit points that no durable head tells of. Before entries go for good: a rebuild that missed them and
   * did not know that they were committed would take the gap for the end of the log.
   */
  async proveCommits(): Promise<void> {
    const unproven = [...this.#tables.groups.all()].filter((group) => group.commit > group.proven && !group.dropping);
    await Promise.all(unproven.map((group) => this.#writeMark(group, {})));
  }

  /** Applies what is durable without a gap and not above the commit point. */
  #applyReady(group: GroupState): void {
    const { pending } = group;
    let count = 0;
    while (count < pending.length && pending[count]!.acknowledged && pending[count]!.sequence <= group.target) count++;
    if (count === 0) return;
    for (const entry of pending.splice(0, count)) {
      group.commit = entry.sequence;
      group.commitBallot = entry.ballot;
      this.#applier.apply(entry);
      this.#options.requests.note(entry);
      if (entry.queued) this.#tables.overlay.put(pendingRowKey(entry), undefined);
    }
    this.#touch(group);
  }

  /** Pending entries that are durable, once those in flight now are. */
  async pending(key: GroupKey): Promise<readonly Logged[]> {
    const group = this.#tables.groups.get(key);
    if (group === undefined) return [];
    await Promise.allSettled(group.pending.map((entry) => Promise.resolve(entry.done)));
    return group.pending.filter((entry) => entry.acknowledged);
  }

  async install(entry: LogEntry): Promise<void> {
    checkEntry(entry);
    const group = this.#usable(entry);
    if (this.#newerHere(group, entry)) return;
    const staged = this.#stagedFor(entry);
    if (isPut(entry)) this.#options.checkSpace();
    const logged = this.#logged(group, entry, staged, STORED_FLAG.INSTALLED);
    await new Promise<void>((resolve, reject) => {
      logged.answer = {
        durable: resolve,
        failed: (error) => {
          if (logged.kind === KIND.BLOCK) this.#unname(logged);
          reject(error);
        },
      };
      this.#laneOf(entry.kind).push(logged);
    });
  }

  #newerHere(group: GroupState, entry: LogEntry): boolean {
    const { overlay } = this.#tables;
    const { sequence, kind, key } = entry;
    if (kind === KIND.RECORD || kind === KIND.TOMBSTONE) {
      const row = overlay.get(orderRowKey(entry));
      return row !== undefined && unpackOrder(row).sequence > sequence;
    }
    const row = overlay.get(kind === KIND.GROUP_ENTRY ? noteRowKey(group, key) : blockRowKey(group, key));
    if (row === undefined) return false;
    return (kind === KIND.GROUP_ENTRY ? unpackNote(row).sequence : blockState(row).sequence) > sequence;
  }

  async rebase(key: GroupKey, sequence: Sequence, ballot: Ballot): Promise<void> {
    const group = this.#usable(key);
    const { commit, end } = group;
    if (sequence < commit) {
      throw new WebdfsError('CONFLICT', `the log is committed up to ${commit}, not ${sequence}: drop the group first`);
    }
    const below = Math.max(0, ...group.pending.map((entry) => entry.ballot)) + 1;
    const error = new WebdfsError('STALE_BALLOT', `the log begins anew after ${sequence}`);
    const change = { base: { sequence, ballot, number: group.mark.number + 1 } };
    const { base } = group.mark;
    const options: MarkOptions = {
      onDurable: () => this.startAt(group, sequence, ballot),
      // the next mark must not tell of it
      onRefused: () => {
        group.mark = { ...group.mark, base };
      },
    };
    const victims = group.pending.slice();
    await (victims.length === 0
      ? this.#writeMark(group, change, options)
      : this.#voidAll(group, victims, error, { after: commit, upTo: end, below }, change, options));
  }

  /** The log begins after `sequence`. */
  startAt(group: GroupState, sequence: Sequence, ballot: Ballot): void {
    group.commit = sequence;
    group.commitBallot = ballot;
    group.target = Math.max(group.target, sequence);
    group.advance();
    this.#touch(group);
  }

  /**
   * Ends the group's tenure, durably: all its entries so far are void from then on. What rows it has is for the caller to
   * delete. Until the mark is durable nothing has changed, lest the index be ahead of the volumes.
   */
  async endTenure(key: GroupKey): Promise<GroupState> {
    const group = this.#usable(key);
    group.ending = true;
    const content = { voids: [], base: undefined, mark: undefined, dropped: true } as const;
    const onDurable = (): void => {
      group.mark = { voids: [], number: group.mark.number };
    };
    try {
      await this.#writeMark(group, content, { tenure: group.tenure + 1, onDurable });
    } finally {
      group.ending = false;
    }
    for (const entry of group.pending.slice()) this.#forget(group, entry, wasDropped(key), true);
    for (const block of this.#tables.staged.all()) {
      if (block.group.policy === key.policy && block.group.group === key.group) this.#applier.dropStaged(block);
    }
    return group;
  }
}

function wasDropped(key: GroupKey): WebdfsError {
  return new WebdfsError('STALE_BALLOT', `group ${key.group} was dropped`);
}
