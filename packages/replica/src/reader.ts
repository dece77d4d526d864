import { type Clock, codeOf, EMPTY, type GroupKey, type Log, messageOf, type NodeId, WebdfsError } from '@webdfs/base';
import type { LocalMap, NodeLease } from '@webdfs/cluster';
import { FLAG, type LogEntry, type RecordRow, type Store } from '@webdfs/store';
import type { Link } from '@webdfs/wire';
import { copyBlock, fromAny } from './block-transfer.ts';
import { ownerOf, touchesOf } from './conditions.ts';
import { fetchEntry } from './entry-fetch.ts';
import type { GroupLoop } from './group-loop.ts';
import type { ReadAnswer, ReadRequest } from './requests.ts';
import type { GroupState } from './state.ts';

/** Tries when the entry moved between the look-up and the read (compaction). */
const READ_TRIES = 3;
/** Damaged things being replaced at once; more are repaired when they are read again. */
const MAX_REPAIRS = 16;

export interface ReaderOptions {
  readonly self: NodeId;
  readonly store: Store;
  readonly map: LocalMap;
  readonly lease: NodeLease;
  readonly link: (node: NodeId) => Link;
  readonly clock: Clock;
  readonly log: Log;
  readonly loop: GroupLoop;
}

/** R1: reads of committed records at their primary; damaged copies are read from another member and replaced. */
export class Reader {
  readonly #options: ReaderOptions;
  readonly #repairing = new Set<string>();
  repaired = 0;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** @throws NOT_PRIMARY, UNAVAILABLE (lease), NO_QUORUM (nobody can say, R1), CORRUPT (no member has it intact) */
  async read(request: ReadRequest): Promise<ReadAnswer | undefined> {
    const { store } = this.#options;
    for (let tries = 1; ; tries++) {
      const row = store.find(request.key);
      // The look-up is where the read takes effect; what follows only proves that it was allowed (L3).
      this.check(request, request.key);
      if (row === undefined || row.group !== request.group || row.policy !== request.policy) return undefined;
      if (!request.entry) return answerOf(row, undefined);
      try {
        return answerOf(row, await store.read(row));
      } catch (error) {
        const code = codeOf(error);
        if (code === 'CORRUPT') return answerOf(row, await this.#elsewhere(request, row));
        // another version by now: the next look-up finds it
        if ((code !== 'NOT_FOUND' && code !== 'CONFLICT') || tries === READ_TRIES) throw error;
      }
    }
  }

  /** After a look-up: this node serves the group now, under its map's ballot and its lease (L3, S12). @throws why not */
  check(group: GroupKey, key: Uint8Array): GroupState {
    const { loop, map, lease, self } = this.#options;
    const state = loop.state(group);
    const details = { revision: map.view.revision };
    if (state?.primary?.phase !== 'serve') {
      throw new WebdfsError('NOT_PRIMARY', `node ${self} does not serve this group`, { details });
    }
    if (map.view.group(group).ballot !== state.primary.ballot) {
      throw new WebdfsError('NOT_PRIMARY', 'the group has another ballot', { details });
    }
    if (!lease.holds()) throw new WebdfsError('UNAVAILABLE', 'the lease of this node has run out', { details });
    const { view, primary } = state;
    if (view.inSync.length < view.minCopies && primary.keys.has(touchesOf('record', key))) {
      throw new WebdfsError('NO_QUORUM', 'nobody can say whether the newest version was acknowledged', {
        details,
        retryAfterMs: 1_000,
      });
    }
    return state;
  }

  /** The same version from another member. @throws CORRUPT if none has it intact */
  async #elsewhere(group: GroupKey, row: RecordRow): Promise<LogEntry> {
    const { link, log } = this.#options;
    log.error('record damaged', { policy: group.policy, group: group.group, volume: row.volume, place: row.place });
    const others = this.#others(group);
    try {
      const entry = await fromAny(others, async (node) => {
        const found = await fetchEntry(link(node), group, { type: 'record', key: row.key });
        if (found.sequence === row.sequence) return found;
        throw new WebdfsError('NOT_FOUND', `node ${node} has version ${found.sequence}, not ${row.sequence}`);
      });
      this.#repair(`r${row.volume}.${row.place}`, async () => this.#options.store.install(entry));
      return entry;
    } catch (error) {
      throw new WebdfsError('CORRUPT', `record is damaged here, and nowhere else: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** Replaces a damaged block by another member's copy, in the background. */
  repairBlock(group: GroupKey, id: Uint8Array): void {
    const { store, link } = this.#options;
    this.#repair(`b${touchesOf('note', id)}`, () =>
      fromAny(this.#others(group), async (node) => {
        const entry = await fetchEntry(link(node), group, { type: 'block', key: id });
        await copyBlock(store, link(node), entry);
        await store.install(entry);
      }).catch((error: unknown) => {
        if (codeOf(error) === 'NOT_FOUND') this.#options.loop.blockLost(group, id);
        throw error;
      }),
    );
  }

  #others(group: GroupKey): NodeId[] {
    const { map, self } = this.#options;
    return map.view.group(group).inSync.filter((node) => node !== self);
  }

  #repair(name: string, work: () => Promise<void>): void {
    if (this.#repairing.has(name) || this.#repairing.size >= MAX_REPAIRS) return;
    this.#repairing.add(name);
    void work()
      .then(
        () => {
          this.repaired++;
          this.#options.log.info('damaged copy replaced', {});
        },
        (error: unknown) => this.#options.log.warn('damaged copy not replaced', { why: messageOf(error) }),
      )
      .finally(() => this.#repairing.delete(name));
  }
}

function answerOf(row: RecordRow, entry: LogEntry | undefined): ReadAnswer {
  const { sequence, modifiedMs, flags, summary } = row;
  if (entry === undefined) return { sequence, modifiedMs, flags, summary, owner: EMPTY, body: EMPTY };
  const owner = ownerOf(entry.meta, (entry.flags & FLAG.CLOSES) !== 0);
  return { sequence, modifiedMs, flags, summary, owner, body: entry.body };
}
