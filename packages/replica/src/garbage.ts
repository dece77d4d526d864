import {
  type Clock,
  codeOf,
  type GroupKey,
  groupNumber,
  messageOf,
  type NodeId,
  type PolicyId,
  sleep,
  type Timer,
  WebdfsError,
} from '@webdfs/base';
import { groupOf, hashKey } from '@webdfs/placement';
import { BLOCK_ID_BYTES, type BlockRow, type RecordRow, REQUEST_ID_BYTES } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { unpackBlockOwner } from './block-codec.ts';
import { birthOf, FENCE_PREFIX } from './conditions.ts';
import {
  decodeExamine,
  decodeNamed,
  decodeVerdicts,
  encodeExamine,
  encodeNamed,
  encodeVerdicts,
  MAX_QUESTIONS,
  type NamedQuestion,
  type NamedVerdict,
} from './garbage-codec.ts';
import { answerNamed, fenceMadeMs, layoutOf } from './named.ts';
import { ATTEMPT_BYTES, unpackSummary } from './record.ts';
import type { ReplicaHost } from './replica-host.ts';
import { REQUEST_FORMAT } from './request-codec.ts';
import { VERB } from './verbs.ts';

/** All times in milliseconds; protocol, section 13. */
export interface GarbageLimits {
  /** From the end of a record to that of its blocks: readers that began before may still want them. */
  readonly releaseMs: number;
  /** A block that no record names yet may still be under way for so long. */
  readonly orphanMs: number;
  /** One look at all blocks of the groups that this node serves. */
  readonly scanMs: number;
  /** Fences are kept so long: attempts that old are refused anyway. */
  readonly fenceKeepMs: number;
  /** Ended records whose blocks are remembered; those of more are found by the scan. */
  readonly hints: number;
}

export const GARBAGE_LIMITS: GarbageLimits = {
  releaseMs: 3_600_000,
  orphanMs: 86_400_000,
  scanMs: 21_600_000,
  fenceKeepMs: 7 * 86_400_000,
  hints: 65_536,
};

/** Blocks 0..count−1 of an attempt whose record ended. */
interface Hint {
  readonly dueMs: number;
  readonly policy: PolicyId;
  readonly attempt: Uint8Array;
  readonly count: number;
  /** How often their primaries could not be told. */
  readonly tries: number;
}

const CALL_MS = 30_000;
const SCAN_ROWS = 128;
/** How often a hint is tried before its blocks are left to the scan. */
const MAX_TRIES = 8;
/** Between looks at what is due, at most. */
const RELEASE_STEP_MS = 10_000;
const DONE: Message = { head: Uint8Array.of(REQUEST_FORMAT), attached: NO_ATTACHMENT };
const NO_NOTE = new Uint8Array(0);

/**
 * Deletes blocks that nobody names (protocol, section 8). Nothing is decided here: the primary of a block's group asks the
 * primary of the key's group, and only its `gone`, which stands behind a committed fence, ends the block.
 *
 * A record that ends leaves a hint in memory, so that its blocks go after `releaseMs`; hints are lost with the process, and
 * then the scan finds the blocks, as it finds those of uploads that broke.
 */
export class Garbage {
  readonly #host: ReplicaHost;
  readonly #limits: GarbageLimits;
  readonly #stop = new AbortController();
  #hints: Hint[] = [];
  #timer: Timer | undefined;
  #counters = { released: 0, examined: 0, hintsLost: 0, fencesEnded: 0 };

  constructor(host: ReplicaHost, limits: Partial<GarbageLimits> = {}) {
    this.#host = host;
    this.#limits = { ...GARBAGE_LIMITS, ...limits };
  }

  start(): void {
    this.#releaseLater();
    void this.#scanAlways();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#stop.abort(new WebdfsError('CANCELLED', 'the node is stopping'));
  }

  /** Numbers for metrics and tests. */
  counters(): Readonly<Record<'released' | 'examined' | 'hintsLost' | 'fencesEnded' | 'hints', number>> {
    return { ...this.#counters, hints: this.#hints.length };
  }

  // ---- hints ----

  /** The record that this row stood for was replaced or deleted, by a write that is committed. */
  replaced(row: RecordRow): void {
    // an inline body lies within the entry: then there are no blocks
    if (unpackSummary(row.summary).size <= row.entryBytes && unpackSummary(row.summary).parts === 0) return;
    if (this.#hints.length >= this.#limits.hints) {
      this.#counters.hintsLost++;
      return;
    }
    void this.#remember(row).catch((error: unknown) => {
      if (!(error instanceof WebdfsError)) throw error;
      this.#counters.hintsLost++;
    });
  }

  async #remember(row: RecordRow): Promise<void> {
    const layout = layoutOf(await this.#host.store.read(row));
    if (layout.type === 'inline') return;
    const { policy } = row;
    const dueMs = this.#host.clock.monotonic() + this.#limits.releaseMs;
    const parts =
      layout.type === 'parts' ? layout.parts : [{ attempt: layout.attempt, size: unpackSummary(row.summary).size }];
    for (const { attempt, size } of parts) {
      if (this.#hints.length >= this.#limits.hints) this.#counters.hintsLost++;
      else
        this.#hints.push({ dueMs, policy, attempt, count: Math.max(1, Math.ceil(size / layout.blockBytes)), tries: 0 });
    }
  }

  #releaseLater(): void {
    const ms = Math.min(RELEASE_STEP_MS, Math.max(1, this.#limits.releaseMs));
    this.#timer = this.#host.clock.after(ms, () => {
      void this.release().finally(() => {
        if (!this.#stop.signal.aborted) this.#releaseLater();
      });
    });
  }

  /** Has the blocks of all hints that are due looked at. */
  async release(): Promise<void> {
    const now = this.#host.clock.monotonic();
    const first = this.#hints.findIndex(({ dueMs }) => dueMs > now);
    const due = first < 0 ? this.#hints : this.#hints.slice(0, first);
    this.#hints = first < 0 ? [] : this.#hints.slice(first);
    for (const hint of due) {
      if (this.#stop.signal.aborted) return;
      const isTold = await this.#releaseAttempt(hint);
      if (!isTold) this.#rememberAgain(hint);
    }
  }

  /** After as long again: a group without a primary has one by then. */
  #rememberAgain(hint: Hint): void {
    const tries = hint.tries + 1;
    const dueMs = this.#host.clock.monotonic() + this.#limits.releaseMs;
    if (tries < MAX_TRIES && this.#hints.length < this.#limits.hints) this.#hints.push({ ...hint, tries, dueMs });
    else this.#counters.hintsLost++;
  }

  /** @returns whether all primaries concerned have looked at their blocks */
  async #releaseAttempt({ policy, attempt, count }: Hint): Promise<boolean> {
    const { map } = this.#host;
    const byGroup = new Map<number, { group: GroupKey; ids: Uint8Array[] }>();
    for (let number = 0; number < count; number++) {
      const id = blockId(attempt, number);
      const group = { policy, group: groupOf(hashKey(id).high, map.view.map.groupBits) };
      const found = byGroup.get(group.group);
      if (found === undefined) byGroup.set(group.group, { group, ids: [id] });
      else found.ids.push(id);
    }
    let isTold = true;
    for (const { group, ids } of byGroup.values()) {
      for (let at = 0; at < ids.length; at += MAX_QUESTIONS) {
        if (!(await this.#tell(group, ids.slice(at, at + MAX_QUESTIONS)))) isTold = false;
      }
    }
    return isTold;
  }

  async #tell(group: GroupKey, ids: readonly Uint8Array[]): Promise<boolean> {
    const { map } = this.#host;
    const { primary } = map.view.group(group);
    if (primary === undefined) return false;
    try {
      const message = encodeExamine({ ...group, ids }, map.view.revision);
      await this.#host.link(primary).call(VERB.EXAMINE, message, { deadlineMs: CALL_MS, signal: this.#stop.signal });
      return true;
    } catch (error) {
      this.#note('blocks were not looked at', error, group);
      return false;
    }
  }

  // ---- blocks of groups that this node serves ----

  /** EXAMINE. @throws NOT_PRIMARY, CORRUPT, TOO_LARGE */
  async onExamine(message: Message): Promise<Message> {
    const { revision, request } = decodeExamine(message);
    if (revision > this.#host.map.view.revision) await this.#host.map.readThrough(revision);
    const group: GroupKey = { policy: request.policy, group: request.group };
    this.#checkServed(group);
    const rows = request.ids.map((id) => this.#host.store.findBlock(group, id)).filter((row) => row !== undefined);
    if (await this.#examine(group, rows)) return DONE;
    throw new WebdfsError('UNAVAILABLE', 'nobody could say whether all of the blocks are named');
  }

  #checkServed(group: GroupKey): void {
    if (this.#host.serving(group) !== 0) return;
    const details = { revision: this.#host.map.view.revision };
    throw new WebdfsError('NOT_PRIMARY', `group ${group.policy}/${group.group} is not served here`, { details });
  }

  /**
   * Ends those of the blocks that are gone for the primary of their key.
   *
   * @returns whether each of them is known to be named or gone
   */
  async #examine(group: GroupKey, rows: readonly BlockRow[]): Promise<boolean> {
    const { store } = this.#host;
    let isKnown = true;
    const asked = new Map<NodeId, { rows: BlockRow[]; questions: NamedQuestion[] }>();
    for (const row of rows) {
      const entry = await store.readBlockEntry(row);
      const { key, uploadId } = unpackBlockOwner(entry.meta.subarray(REQUEST_ID_BYTES));
      const home = { policy: group.policy, group: groupOf(hashKey(key).high, this.#host.map.view.map.groupBits) };
      const { primary } = this.#host.map.view.group(home);
      // B3: without a primary nobody can say
      if (primary === undefined) {
        isKnown = false;
        continue;
      }
      let list = asked.get(primary);
      if (list === undefined) asked.set(primary, (list = { rows: [], questions: [] }));
      list.rows.push(row);
      list.questions.push({ ...home, key, uploadId, attempt: row.id.subarray(0, ATTEMPT_BYTES) });
    }
    for (const [node, list] of asked) {
      const verdicts = await this.#ask(node, list.questions);
      for (const [i, row] of list.rows.entries()) {
        this.#counters.examined++;
        if (verdicts[i] === 'unknown') isKnown = false;
        if (verdicts[i] !== 'gone') continue;
        this.#checkServed(group);
        await this.#host.proposeBlockGone(group, row.id);
        this.#counters.released++;
      }
    }
    return isKnown;
  }

  async #ask(node: NodeId, questions: readonly NamedQuestion[]): Promise<NamedVerdict[]> {
    const message = encodeNamed(questions, this.#host.map.view.revision);
    const answer = await this.#host
      .link(node)
      .call(VERB.NAMED, message, { deadlineMs: CALL_MS, signal: this.#stop.signal });
    return decodeVerdicts(answer);
  }

  /** NAMED, at the primary of the keys' groups. @throws CORRUPT, TOO_LARGE */
  async onNamed(message: Message): Promise<Message> {
    const { revision, questions } = decodeNamed(message);
    if (revision > this.#host.map.view.revision) await this.#host.map.readThrough(revision);
    const verdicts: NamedVerdict[] = [];
    for (const question of questions) verdicts.push(await answerNamed(this.#host, question));
    return encodeVerdicts(verdicts);
  }

  // ---- the scan ----

  async #scanAlways(): Promise<void> {
    try {
      for (;;) await this.scan(this.#limits.scanMs);
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }

  /**
   * Looks once at all blocks of the groups that this node serves, and at their fences.
   *
   * @param ms  the time over which the groups are spread, milliseconds
   */
  async scan(ms: number): Promise<void> {
    const { clock } = this.#host;
    const until = clock.monotonic() + ms;
    const groups = [...this.#host.served()].toSorted((a, b) => groupNumber(a) - groupNumber(b));
    for (const [i, group] of groups.entries()) {
      await pause(clock, (until - clock.monotonic()) / (groups.length - i), this.#stop.signal);
      try {
        await this.#scanGroup(group);
      } catch (error) {
        this.#note('group could not be scanned', error, group);
      }
    }
    await pause(clock, until - clock.monotonic(), this.#stop.signal);
  }

  async #scanGroup(group: GroupKey): Promise<void> {
    let after: Uint8Array | undefined;
    do {
      if (this.#host.serving(group) === 0) return;
      const { rows, next } = await this.#host.store.walkBlocks(group, after, SCAN_ROWS);
      const oldest = this.#host.clock.now() - this.#limits.orphanMs;
      await this.#examine(
        group,
        rows.filter((row) => Math.max(row.modifiedMs, birthOf(row.id)) < oldest),
      );
      after = next;
    } while (after !== undefined);
    await this.#endFences(group);
  }

  async #endFences(group: GroupKey): Promise<void> {
    const oldest = this.#host.clock.now() - this.#limits.fenceKeepMs;
    for (const { name, value } of await this.#host.store.notes(group, FENCE_PREFIX)) {
      const made = fenceMadeMs(value);
      if (made === undefined || made >= oldest) continue;
      await this.#host.proposeNote(group, name, NO_NOTE);
      this.#counters.fencesEnded++;
    }
  }

  #note(event: string, error: unknown, group: GroupKey): void {
    if (!(error instanceof WebdfsError)) throw error;
    const fields = { policy: group.policy, group: group.group, code: codeOf(error), why: messageOf(error) };
    this.#host.log.debug(event, fields);
  }
}

/** Block n of an attempt. */
export function blockId(attempt: Uint8Array, number: number): Uint8Array {
  const id = new Uint8Array(BLOCK_ID_BYTES);
  id.set(attempt);
  new DataView(id.buffer).setUint32(ATTEMPT_BYTES, number);
  return id;
}

async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(clock, ms, signal);
  else signal.throwIfAborted();
}
