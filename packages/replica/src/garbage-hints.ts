import { codeOf, type GroupKey, messageOf, type PolicyId, type Timer, WebdfsError } from '@webdfs/base';
import { groupOf, hashKey } from '@webdfs/placement';
import { BLOCK_ID_BYTES, type RecordRow } from '@webdfs/store';
import { encodeExamine, MAX_QUESTIONS } from './garbage-codec.ts';
import { layoutOf } from './named.ts';
import { ATTEMPT_BYTES, unpackSummary } from './record.ts';
import type { ReplicaHost } from './replica-host.ts';
import { VERB } from './verbs.ts';

export interface HintLimits {
  /** From the end of a record to that of its blocks, milliseconds: readers that began before may still want them. */
  readonly releaseMs: number;
  /** Ended attempts that are remembered; those of more are found by the scan. */
  readonly hints: number;
}

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
/** Between looks at what is due, at most. */
const RELEASE_STEP_MS = 10_000;
/** How often a hint is tried before its blocks are left to the scan. */
const MAX_TRIES = 8;

/**
 * The blocks of records that were replaced or deleted, in the memory of their primary: when their time is over, the primaries
 * of the blocks are told to look at them. A hint proves nothing, and may be lost.
 */
export class GarbageHints {
  readonly #host: ReplicaHost;
  readonly #limits: HintLimits;
  readonly #stop = new AbortController();
  #hints: Hint[] = [];
  #lost = 0;
  #timer: Timer | undefined;

  constructor(host: ReplicaHost, limits: HintLimits) {
    this.#host = host;
    this.#limits = limits;
  }

  start(): void {
    this.#releaseLater();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#stop.abort(new WebdfsError('CANCELLED', 'the node is stopping'));
  }

  counters(): { readonly hints: number; readonly hintsLost: number } {
    return { hints: this.#hints.length, hintsLost: this.#lost };
  }

  /** The record that this row stood for was replaced or deleted, by a write that is committed. */
  replaced(row: RecordRow): void {
    // an inline body lies within the entry: then there are no blocks
    if (unpackSummary(row.summary).size <= row.entryBytes && unpackSummary(row.summary).parts === 0) return;
    if (this.#hints.length >= this.#limits.hints) {
      this.#lost++;
      return;
    }
    void this.#remember(row).catch((error: unknown) => {
      if (!(error instanceof WebdfsError)) throw error;
      this.#lost++;
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
      if (this.#hints.length >= this.#limits.hints) this.#lost++;
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
    else this.#lost++;
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
      if (!(error instanceof WebdfsError)) throw error;
      const fields = { policy: group.policy, group: group.group, code: codeOf(error), why: messageOf(error) };
      this.#host.log.debug('blocks were not looked at', fields);
      return false;
    }
  }
}

/** Block n of an attempt. */
export function blockId(attempt: Uint8Array, number: number): Uint8Array {
  const id = new Uint8Array(BLOCK_ID_BYTES);
  id.set(attempt);
  new DataView(id.buffer).setUint32(ATTEMPT_BYTES, number);
  return id;
}
