import {
  type Clock,
  codeOf,
  type GroupKey,
  groupNumber,
  messageOf,
  type NodeId,
  sleep,
  WebdfsError,
} from '@webdfs/base';
import { groupOf, hashKey } from '@webdfs/placement';
import { type BlockRow, REQUEST_ID_BYTES } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { unpackBlockOwner } from './block-codec.ts';
import { birthOf, FENCE_PREFIX } from './conditions.ts';
import {
  decodeExamine,
  decodeNamed,
  decodeVerdicts,
  encodeNamed,
  encodeVerdicts,
  type NamedQuestion,
  type NamedVerdict,
} from './garbage-codec.ts';
import { GarbageHints, type HintLimits } from './garbage-hints.ts';
import { answerNamed, fenceMadeMs } from './named.ts';
import { ATTEMPT_BYTES } from './record.ts';
import type { ReplicaHost } from './replica-host.ts';
import { REQUEST_FORMAT } from './request-codec.ts';
import { VERB } from './verbs.ts';

/** All times in milliseconds; protocol, section 13. */
export interface GarbageLimits extends HintLimits {
  /** A block that no record names yet may still be under way for so long. */
  readonly orphanMs: number;
  /** One look at all blocks of the groups that this node serves. */
  readonly scanMs: number;
  /** Fences are kept so long: attempts that old are refused anyway. */
  readonly fenceKeepMs: number;
}

export const GARBAGE_LIMITS: GarbageLimits = {
  releaseMs: 3_600_000,
  orphanMs: 86_400_000,
  scanMs: 21_600_000,
  fenceKeepMs: 7 * 86_400_000,
  hints: 65_536,
};

const CALL_MS = 30_000;
const SCAN_ROWS = 128;
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
  /** What ended records leave behind. */
  readonly hints: GarbageHints;
  #counters = { released: 0, examined: 0, fencesEnded: 0 };

  constructor(host: ReplicaHost, limits: Partial<GarbageLimits> = {}) {
    this.#host = host;
    this.#limits = { ...GARBAGE_LIMITS, ...limits };
    this.hints = new GarbageHints(host, this.#limits);
  }

  start(): void {
    this.hints.start();
    void this.#scanAlways();
  }

  stop(): void {
    this.hints.stop();
    this.#stop.abort(new WebdfsError('CANCELLED', 'the node is stopping'));
  }

  /** Numbers for metrics and tests. */
  counters(): Readonly<Record<'released' | 'examined' | 'hintsLost' | 'fencesEnded' | 'hints', number>> {
    return { ...this.#counters, ...this.hints.counters() };
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

async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(clock, ms, signal);
  else signal.throwIfAborted();
}
