import { EMPTY, type GroupKey, groupNumber } from '@webdfs/base';
import { type Applier, type Tables, unpackBlockBody } from './applier.ts';
import { BLOCK_ID_BYTES, KIND } from './entry.ts';
import type { EntryHead } from './entry-format.ts';
import type { GroupLogs } from './group-logs.ts';
import { type MarkContent, unpackMark, type VoidRange } from './group-mark.ts';
import type { GroupState } from './group-table.ts';
import { type PieceKey, unpackPieceKey } from './index-rows.ts';
import { isInstalled, isMoved, isNumbered, Logged, NO_SUMS } from './logged.ts';
import { type MetEntry, Pointers } from './pointers.ts';
import type { RequestRows } from './request-rows.ts';
import type { ScannedEntry } from './scanner.ts';
import { coveredBytes, type StagedBlock } from './staged-table.ts';
import { packPlace, pendingRowKey } from './state-rows.ts';
import { copyOf } from './plain-bytes.ts';

export interface ReplayOptions {
  readonly tables: Tables;
  readonly applier: Applier;
  readonly logs: GroupLogs;
  readonly requests: RequestRows;
  /** The index was lost: moved entries insert, and every file is read. */
  readonly rebuild: boolean;
  /** Deletes the rows of a group whose tenure has ended. */
  readonly dropRows: (group: GroupState) => Promise<void>;
}

/** A copy of an entry that a scan met, for later. Bodies only where they are applied from. */
export function keepScanned(step: ScannedEntry): Logged {
  const keepsBody = step.head.kind === KIND.BLOCK || step.head.kind === KIND.GROUP_ENTRY;
  const logged = new Logged(step.head, {
    key: copyOf(step.key),
    meta: copyOf(step.meta),
    body: keepsBody ? copyOf(step.body) : EMPTY,
    sums: NO_SUMS,
    bodyBytes: step.head.bodyBytes,
  });
  logged.volume = step.head.volume;
  logged.place = step.head.place;
  logged.durable = true;
  logged.damaged = !step.whole;
  return logged;
}

/**
 * Brings entries met in volumes into rows and group state, in any order, any number of times, with the same result (P7,
 * P9). Entries above the commit point known so far wait; `finish` decides what becomes of them.
 */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #tables: Tables;
  readonly #pointers: Pointers;
  /** Blocks met before all their pieces, which happens only when every file is read. */
  readonly #early: Logged[] = [];
  /** The highest ballot met at or below the commit point, by group: all that is known of it without the index. */
  readonly #ballots = new Map<number, number>();
  /** The newest mark of each group in what is to be scanned. */
  readonly #newest = new Map<GroupState, { readonly tenure: number; readonly content: MarkContent }>();
  /** Void by a mark that may stand in the page cache only, until it is written again: so long they are not let go. */
  readonly #voided: Logged[] = [];
  /** Entries found void, and what marks must say of them. */
  readonly #voids = new Map<GroupState, { ranges: VoidRange[]; entries: Logged[] }>();
  entries = 0;

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.#tables = options.tables;
    this.#pointers = new Pointers(options.tables);
  }

  /**
   * First pass: what marks say of the groups, and in a rebuild heads too, before any entry is judged by it. The lanes are
   * met one after another: entries of one may be void, or committed, by what the other says.
   */
  survey(head: EntryHead, meta: Uint8Array): void {
    if (head.kind === KIND.SYNC_MARK || head.kind === KIND.SEAL) return;
    const group = this.#tables.groups.need(head);
    if (this.#options.rebuild) this.#surveyAll(group, head, meta);
    else if (head.kind === KIND.GROUP_MARK) this.#surveyMark(group, head, meta);
  }

  #surveyMark(group: GroupState, { tenure }: EntryHead, meta: Uint8Array): void {
    const known = this.#newest.get(group);
    const content = unpackMark(meta);
    if (known !== undefined && (tenure - known.tenure || content.number - known.content.number) <= 0) return;
    this.#newest.set(group, { tenure, content });
  }

  #surveyAll(group: GroupState, head: EntryHead, meta: Uint8Array): void {
    if (head.tenure > group.tenure) {
      group.clear();
      group.tenure = head.tenure;
    } else if (head.tenure < group.tenure) return;
    if (head.kind === KIND.GROUP_MARK) {
      const content = unpackMark(meta);
      if (content.number > group.mark.number) group.mark = content;
      group.commit = Math.max(group.commit, head.commit);
    } else if (isNumbered(head.kind) && !isInstalled(head)) {
      // only what was applied is copied, and what it has replaced was left behind: without it there is a gap
      group.commit = Math.max(group.commit, head.commit, isMoved(head) ? head.sequence : 0);
    }
  }

  /** Between the passes. */
  surveyed(): void {
    for (const group of this.#tables.groups.all()) {
      if (this.#options.rebuild) beginAtBase(group);
      else this.#takeNewest(group);
    }
  }

  /** What is void by a mark to come must not be taken for committed before. */
  #takeNewest(group: GroupState): void {
    const newest = this.#newest.get(group);
    if (newest?.tenure === group.tenure && newest.content.number > group.mark.number) group.mark = newest.content;
    // an interrupted start may have given such entries rows
    for (const entry of group.pending.slice()) {
      if (!group.isVoid(entry.sequence, entry.ballot)) continue;
      group.removePending(entry);
      this.#voided.push(entry);
    }
  }

  /** An entry that is durable and proven. A promise only if it must wait. */
  meet(entry: Logged): Promise<void> | undefined {
    this.entries += 1;
    if (entry.kind === KIND.SYNC_MARK || entry.kind === KIND.SEAL) {
      this.#options.applier.settle(entry);
      return undefined;
    }
    const group = this.#tables.groups.need(entry);
    if (entry.tenure > group.tenure) return this.#newTenure(group, entry);
    if (entry.tenure < group.tenure) this.#options.applier.settle(entry);
    else this.#meetNow(group, entry);
    return undefined;
  }

  /** The group was dropped since the index was last written: its old rows go before the first new one comes. */
  async #newTenure(group: GroupState, entry: Logged): Promise<void> {
    group.tenure = entry.tenure;
    group.mark = { number: group.mark.number, voids: [] };
    await this.#options.dropRows(group);
    this.#takeNewest(group);
    this.#meetNow(group, entry);
  }

  #meetNow(group: GroupState, entry: Logged): void {
    if (entry.kind === KIND.GROUP_MARK) this.#mark(group, entry);
    else if (entry.kind === KIND.PIECE) this.#piece(entry);
    else if (isMoved(entry) && !this.#options.rebuild) this.#redirect(entry);
    else if (this.#waits(group, entry)) return;
    this.#options.applier.settle(entry);
  }

  /** Whether the row of this version points to this very copy. */
  isNamed(entry: Logged): boolean {
    return this.#pointers.points(metOf(entry));
  }

  /**
   * Makes the row of this version point here. What a recovery has written again may be in the index already, at its old
   * place: beyond the end of a file that is sealed below it.
   */
  #redirect(entry: Logged): void {
    const { volume, place, entryBytes } = entry;
    if (!entry.damaged) this.#pointers.redirect(metOf(entry), { volume, place, entryBytes });
  }

  #mark(group: GroupState, entry: Logged): void {
    const content = unpackMark(entry.meta);
    if (content.number === group.written.number) return this.#redirect(entry);
    if (content.number < group.written.number) return;
    const { base } = content;
    const isNewBase = base !== undefined && base.number > (group.written.base?.number ?? 0);
    this.#options.applier.applyMark(entry);
    if (isNewBase && base.sequence >= group.commit) this.#startAt(group, base);
  }

  /** A log was begun anew: what is not void below its beginning had been committed. */
  #startAt(group: GroupState, base: { sequence: number; ballot: number }): void {
    const before = group.pending.filter((entry) => entry.sequence <= base.sequence);
    for (const entry of before) {
      this.#forget(group, entry);
      this.#apply(entry);
    }
    this.#options.logs.startAt(group, base.sequence, base.ballot);
    this.#advance(group);
  }

  #forget(group: GroupState, entry: Logged): void {
    group.removePending(entry);
    if (entry.queued) this.#tables.overlay.put(pendingRowKey(entry), undefined);
    this.#options.applier.settle(entry);
  }

  #piece(entry: Logged): void {
    const key = unpackPieceKey(entry.key);
    if (key === undefined) return;
    const place = this.#pointers.placeOf(metOf(entry));
    if (place === undefined) this.#unnamedPiece(entry, key);
    else if (place.volume === entry.volume && place.place === entry.place) {
      if (entry.damaged) this.#damaged(entry);
    } else this.#redirect(entry);
  }

  #unnamedPiece(entry: Logged, key: PieceKey): void {
    if (isMoved(entry) && !this.#options.rebuild) return;
    if (entry.damaged) this.#damaged(entry);
    const block = this.#tables.staged.get(key.id, key.generation) ?? this.#newlyStaged(entry, key);
    this.#options.applier.applyPiece(block, entry);
  }

  #newlyStaged({ policy, group }: GroupKey, { id, generation }: PieceKey): StagedBlock {
    const sinceMs = this.#tables.clock.now();
    const block = { group: { policy, group }, id, generation, pieces: [], whole: undefined, named: 0, sinceMs };
    this.#tables.staged.add(block);
    return block;
  }

  /** Brings a numbered entry in; true if it waits for its commit: until it has a `q` row the checkpoint must not pass it. */
  #waits(group: GroupState, entry: Logged): boolean {
    this.#options.requests.met(entry);
    if (entry.damaged) this.#damaged(entry);
    if (isInstalled(entry)) {
      this.#apply(entry);
      return false;
    }
    group.proven = Math.max(group.proven, entry.commit);
    group.target = Math.max(group.target, entry.commit);
    if (group.isVoid(entry.sequence, entry.ballot)) {
      this.#voided.push(entry);
      return true;
    }
    if (entry.sequence <= group.commit) {
      const number = groupNumber(group);
      this.#ballots.set(number, Math.max(entry.ballot, this.#ballots.get(number) ?? 0));
      this.#apply(entry);
      return false;
    }
    const same = group.pending.find((other) => other.sequence === entry.sequence);
    if (same?.ballot === entry.ballot) {
      if (entry.damaged) return false;
      this.#forget(group, same);
    } else if (same !== undefined && same.ballot > entry.ballot) {
      this.#displaced(group, entry, same);
      return true;
    } else if (same !== undefined) {
      group.removePending(same);
      this.#displaced(group, same, entry);
    }
    group.addPending(entry);
    this.#advance(group);
    return entry.sequence > group.commit;
  }

  /** Of two entries of one sequence the higher ballot counts: the other is void, which its mark may not have come to say. */
  #displaced(group: GroupState, loser: Logged, winner: Logged): void {
    const { sequence } = loser;
    this.#void(group, [loser], { after: sequence - 1, upTo: sequence, below: winner.ballot });
  }

  #void(group: GroupState, entries: readonly Logged[], range?: VoidRange): void {
    const known = this.#voids.get(group) ?? { ranges: [], entries: [] };
    if (range !== undefined) known.ranges.push(range);
    known.entries.push(...entries);
    this.#voids.set(group, known);
  }

  /** Applies what the commit point has passed, as far as there is no gap. */
  #advance(group: GroupState): void {
    while (group.pending[0] !== undefined && group.pending[0].sequence <= group.target) {
      const next = group.pending[0];
      if (next.sequence !== group.commit + 1) break;
      this.#forget(group, next);
      group.commit = next.sequence;
      group.commitBallot = next.ballot;
      this.#apply(next);
    }
    this.#tables.groups.touch(group);
  }

  #apply(entry: Logged): void {
    const needsBody = entry.kind === KIND.BLOCK || entry.kind === KIND.GROUP_ENTRY;
    if (entry.damaged && needsBody) return;
    if (entry.kind === KIND.BLOCK && this.#pointers.placeOf(metOf(entry)) !== undefined) return this.#redirect(entry);
    if (this.#options.requests.isYoung(entry)) this.#options.requests.note(entry);
    if (entry.kind === KIND.BLOCK && this.#options.rebuild && !this.#hasPieces(entry)) this.#early.push(entry);
    else this.#options.applier.apply(entry);
  }

  #hasPieces(entry: Logged): boolean {
    const key = unpackBlockKeyOf(entry);
    const staged = this.#tables.staged.get(key.id, key.generation);
    return coveredBytes(staged) >= unpackBlockBody(entry.body).size;
  }

  /** The body is rotten. A record is indexed all the same: reads must answer "damaged", not an older version. */
  #damaged(entry: Logged): void {
    const { volume, place, entryBytes, kind } = entry;
    const ofBlock = kind === KIND.BLOCK || kind === KIND.PIECE;
    const key = ofBlock ? copyOf(entry.key, 0, BLOCK_ID_BYTES) : entry.key;
    const headLost = kind !== KIND.RECORD && kind !== KIND.PIECE;
    const what = 'body does not fit its checksums';
    this.#tables.damage.report({ volume, place, length: entryBytes, what, headLost, key, group: entry });
  }

  /**
   * All entries have been met. What waits beyond a gap was never acknowledged (or is lost with what made the gap): it is
   * void. The rest stays pending, with `q` rows. What was found void is returned: marks must say so before `release`.
   */
  finish(): ReadonlyMap<GroupState, { readonly ranges: readonly VoidRange[]; readonly entries: readonly Logged[] }> {
    for (const entry of this.#early) this.#options.applier.apply(entry);
    this.#letVoidGo();
    for (const group of this.#tables.groups.all()) {
      if (group.commitBallot === 0)
        group.commitBallot = this.#ballots.get(groupNumber(group)) ?? group.mark.base?.ballot ?? 0;
      this.#advance(group);
      const beyond = this.#beyondGap(group);
      const first = beyond[0];
      if (first !== undefined) {
        const below = Math.max(...beyond.map((entry) => entry.ballot)) + 1;
        this.#void(group, beyond, { after: first.sequence - 1, upTo: beyond.at(-1)!.sequence, below });
        for (const entry of beyond) group.removePending(entry);
      }
      // a mark behind a torn entry was gone by, and would be forgotten: it is said again
      if (group.mark.number > group.written.number) this.#void(group, []);
      for (const entry of group.pending) this.#keepPending(entry);
      group.target = group.commit;
      group.advance();
      this.#tables.groups.touch(group);
    }
    this.#dropUnnamed();
    return this.#voids;
  }

  #letVoidGo(): void {
    for (const entry of this.#voided) {
      const group = this.#tables.groups.need(entry);
      // rows of an earlier tenure have gone with it, and one of this may have the name
      if (entry.tenure === group.tenure) this.#forget(group, entry);
      else this.#options.applier.settle(entry);
    }
  }

  /** Entries that are durably void: no scan need meet them again. */
  release(group: GroupState, entries: readonly Logged[]): void {
    for (const entry of entries) this.#forget(group, entry);
  }

  #beyondGap(group: GroupState): Logged[] {
    let { commit: sequence, commitBallot: ballot } = group;
    const at = group.pending.findIndex((entry) => {
      const follows = entry.sequence === sequence + 1 && entry.ballot >= ballot;
      sequence = entry.sequence;
      ballot = entry.ballot;
      return !follows;
    });
    return at < 0 ? [] : group.pending.slice(at);
  }

  #keepPending(entry: Logged): void {
    entry.durable = true;
    entry.acknowledged = false;
    if (!entry.queued) {
      entry.queued = true;
      this.#tables.overlay.put(pendingRowKey(entry), packPlace(entry));
    }
    this.#options.applier.settle(entry);
    entry.answer = { durable: () => undefined, failed: () => undefined };
    if (entry.kind !== KIND.BLOCK || entry.damaged) return;
    const { id, generation } = unpackBlockKeyOf(entry);
    const staged = this.#tables.staged.get(id, generation);
    if (staged === undefined) return;
    staged.named += 1;
    staged.whole = unpackBlockBody(entry.body);
  }

  /** No stream survives a start: pieces that no BLOCK names are garbage. */
  #dropUnnamed(): void {
    for (const block of this.#tables.staged.all()) {
      if (block.named === 0) this.#options.applier.dropStaged(block);
    }
  }
}

/** Of a rebuild: a rebased log begins where its mark says. */
function beginAtBase(group: GroupState): void {
  const { base } = group.mark;
  if (base !== undefined && base.sequence > group.commit) group.commit = base.sequence;
  group.target = group.commit;
}

function metOf(entry: Logged): MetEntry {
  return { head: entry, key: entry.key, entryBytes: entry.entryBytes };
}

function unpackBlockKeyOf(entry: Logged): { id: Uint8Array; generation: number } {
  const id = copyOf(entry.key, 0, BLOCK_ID_BYTES);
  const view = new DataView(entry.key.buffer, entry.key.byteOffset + BLOCK_ID_BYTES, 4);
  return { id, generation: view.getUint32(0) };
}
