import { type Ballot, compareBytes, type GroupKey, type NodeId, sleep, WebdfsError } from '@webdfs/base';
import type { BlockRow, LogEntry, WalkRow } from '@webdfs/store';
import { fromAny } from './block-transfer.ts';
import { fetchEntries, type FetchOptions, type Wanted } from './fetching.ts';
import {
  type BlockPageRow,
  decodePage,
  encodePageRequest,
  type GroupSum,
  type NoteRow,
  type Page,
  type PageKind,
} from './learner-codec.ts';
import { compareHeld, compareWalk, type Pair, pairs, RowRun, type Verdict } from './learner-compare.ts';
import { sameContents, sumOf } from './learner-pages.ts';
import { attachedBytes, hurryOf, moveBlock } from './move-block.ts';
import type { MoveLane } from './move-pace.ts';
import type { ReplicaHost } from './replica-host.ts';
import { blockGoneOf, noteOf, type Synthesis, tombstoneOf } from './synthetic-entry.ts';
import { VERB } from './verbs.ts';

/** What a lesson has moved so far; its owner adds them up. */
export interface Movement {
  /** Rows compared, entries and bytes that had to travel, entries removed here. */
  compared: number;
  entries: number;
  bytes: number;
  removed: number;
  /** Bytes of blocks that came and were not kept: a source that broke off, a change that was given up. */
  wasted: number;
  /** Bytes known to be missing and not yet here. */
  missing: number;
}

export interface LessonOptions {
  readonly key: GroupKey;
  readonly ballot: Ballot;
  readonly primary: NodeId;
  /** All committed entries up to here are known to be applied here; 0: nothing is known. */
  readonly complete: number;
  readonly movement: Movement;
  /** At what pace it takes things in. */
  readonly lane: MoveLane;
  /** Members to get things from, the best first; asked again for each batch, since they change. */
  readonly sources: () => readonly NodeId[];
  /** Runs the copying of a block, or of some records, when its turn comes. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>;
  readonly signal: AbortSignal;
}

/** A page waits for its turn where the primary may send only so much. */
const CALL_MS = 60_000;
/** Own rows read at once, and things fetched or installed together. */
const RUN_ROWS = 256;
const BATCH = 128;
/** Tries to see both sides at one commit point, and the pause between them. */
const SUM_TRIES = 40;
const SUM_PAUSE_MS = 15;

/** What is here can be no part of the primary's history. */
export class Diverged extends WebdfsError {
  constructor(message: string) {
    super('CONFLICT', message);
  }
}

/**
 * One group's past, brought to a learner by differences (protocol J3), while its new records come by the stream.
 *
 * A node that was a member until it was lost has everything up to its commit point: only rows above it are asked for, and
 * the sums of both sides then prove that this was all. Where they differ, and for a node of which nothing is known, all rows
 * are compared in order.
 */
export class Lesson {
  readonly #host: ReplicaHost;
  readonly #options: LessonOptions;

  constructor(host: ReplicaHost, options: LessonOptions) {
    this.#host = host;
    this.#options = options;
  }

  /**
   * Resolves when this node holds what the primary holds.
   *
   * @throws Diverged if what is here can be no part of the primary's history; the errors of links and disk
   */
  async run(known: GroupSum): Promise<void> {
    const { store } = this.#host;
    const { key, complete } = this.#options;
    await this.#learnRequests();
    if (sameContents(known, await sumOf(store, key))) return;
    if (complete > 0) {
      await this.#compare(complete);
      if ((await this.#compareSums()) === 'same') return;
    }
    await this.#compare(0);
    if ((await this.#compareSums()) === 'different') {
      throw new WebdfsError('UNAVAILABLE', `group ${key.policy}/${key.group} differs after all its rows were compared`);
    }
  }

  async #compare(above: number): Promise<void> {
    await this.#learnNotes();
    await this.#learnBlocks(above);
    await this.#learnRecords(above);
  }

  /** Requests answered by entries that this node may never see: their repeats must be known here too. */
  async #learnRequests(): Promise<void> {
    for await (const page of this.#pages('requests', 0)) this.#host.rememberRequests(this.#options.key, page.rows);
  }

  async #learnRecords(above: number): Promise<void> {
    const { store } = this.#host;
    const { key, movement } = this.#options;
    const own = new RowRun<WalkRow, string>((after) => store.walkRecords(key, after, RUN_ROWS));
    for await (const page of this.#pages('records', above)) {
      const differing: Differing<WalkRow> = { fetch: [], bury: [], remove: [] };
      const rows =
        above > 0 ? this.#beside(page.rows) : pairs({ ...page, isLast: page.next === undefined }, own, compareWalk);
      for await (const pair of rows) {
        movement.compared++;
        this.#sort(pair, compareHeld(pair.theirs, pair.ours, page.asOf), differing);
        if (differing.remove.length >= BATCH) await this.#bury(differing.remove.splice(0), page.asOf);
      }
      await this.#bury(differing.remove, page.asOf);
      await this.#bury(differing.bury);
      await this.#fetchRecords(differing.fetch);
    }
  }

  /** Rows above what is complete, each with what is here of its key. */
  *#beside(rows: readonly WalkRow[]): Generator<Pair<WalkRow>> {
    for (const theirs of rows) {
      const row = this.#host.store.find(theirs.key);
      const ours = row === undefined ? undefined : { ...theirs, sequence: row.sequence, tombstone: false };
      yield { theirs, ours };
    }
  }

  #sort<Row>({ theirs, ours }: Pair<Row>, verdict: Verdict, differing: Differing<Row>): void {
    const { key } = this.#options;
    switch (verdict) {
      case 'fetch':
        differing.fetch.push(theirs!);
        return;
      case 'bury':
        differing.bury.push(theirs!);
        return;
      case 'remove':
        differing.remove.push(ours!);
        return;
      case 'diverged':
        throw new Diverged(`what is here of group ${key.policy}/${key.group} is of another history`);
      case 'same':
      case 'leave':
        return;
    }
  }

  /** @param asOf  for rows that the primary lacks; else they carry the sequence of its tombstone */
  async #bury(rows: readonly WalkRow[], asOf?: number): Promise<void> {
    this.#options.movement.removed += rows.length;
    await Promise.all(
      rows.map((row) => this.#host.store.install(tombstoneOf(this.#synthesis(asOf ?? row.sequence), row))),
    );
  }

  async #fetchRecords(rows: readonly WalkRow[]): Promise<void> {
    const { key, inTurn } = this.#options;
    const wanted = rows.map(({ key: id, sequence }): Wanted => ({ item: { ...key, type: 'record', id }, sequence }));
    const batches = fetchEntries(this.#host, wanted, this.#fetchOptions());
    // within the turn that blocks have: how much comes is known only once it is here, and must be paid for before there is more
    while (await inTurn(() => this.#takeRecords(batches)));
  }

  /** @returns whether there was a batch */
  async #takeRecords(batches: AsyncGenerator<LogEntry[], void, void>): Promise<boolean> {
    const { movement } = this.#options;
    const batch = await batches.next();
    if (batch.done === true) return false;
    await Promise.all(batch.value.map((entry) => this.#host.store.install(entry)));
    let bytes = 0;
    for (const { body } of batch.value) bytes += body.length;
    movement.entries += batch.value.length;
    movement.bytes += bytes;
    this.#host.moves.received(bytes);
    await this.#pass(bytes);
    return true;
  }

  /** What has come counts, and what comes next waits for it. */
  async #pass(bytes: number): Promise<void> {
    const { lane, key, signal } = this.#options;
    await lane.pass(bytes, hurryOf(this.#host.map.view, key), signal);
  }

  async #learnBlocks(above: number): Promise<void> {
    const { store } = this.#host;
    const { key, movement } = this.#options;
    const own = new RowRun<BlockPageRow, Uint8Array>((after) => store.walkBlocks(key, after, RUN_ROWS));
    const compare = (a: BlockPageRow, b: BlockPageRow): number => compareBytes(a.id, b.id);
    for await (const page of this.#pages('blocks', above)) {
      const differing: Differing<BlockPageRow> = { fetch: [], bury: [], remove: [] };
      const rows =
        above > 0
          ? page.rows.map((theirs) => ({ theirs, ours: store.findBlock(key, theirs.id) as BlockRow | undefined }))
          : pairs({ ...page, isLast: page.next === undefined }, own, compare);
      for await (const { theirs, ours } of rows) {
        movement.compared++;
        this.#sort({ theirs, ours }, compareHeld(standing(theirs), standing(ours), page.asOf), differing);
      }
      await this.#dropBlocks(differing.remove, page.asOf);
      await this.#fetchBlocks(differing.fetch);
    }
  }

  async #dropBlocks(rows: readonly BlockPageRow[], asOf: number): Promise<void> {
    this.#options.movement.removed += rows.length;
    await Promise.all(rows.map(({ id }) => this.#host.store.install(blockGoneOf(this.#synthesis(asOf), id))));
  }

  async #fetchBlocks(rows: readonly BlockPageRow[]): Promise<void> {
    const { key, movement, inTurn } = this.#options;
    const sizes = new Map(rows.map(({ id, size }) => [Buffer.from(id).toString('hex'), size]));
    const wanted = rows.map(({ id, sequence }): Wanted => ({ item: { ...key, type: 'block', id }, sequence }));
    for (const { size } of rows) movement.missing += size;
    try {
      for await (const entries of fetchEntries(this.#host, wanted, this.#fetchOptions())) {
        const copies = entries.map((entry) =>
          inTurn(async () => {
            await this.#moveBlock(entry);
            const name = Buffer.from(entry.key).toString('hex');
            const size = sizes.get(name) ?? 0;
            sizes.delete(name);
            movement.missing -= size;
            movement.bytes += size;
            movement.entries++;
          }),
        );
        await allDone(copies);
      }
    } finally {
      for (const size of sizes.values()) movement.missing -= size;
    }
  }

  async #moveBlock(entry: LogEntry): Promise<void> {
    const { lane, movement, sources, signal } = this.#options;
    signal.throwIfAborted();
    const wasted = (bytes: number): void => void (movement.wasted += bytes);
    await fromAny(sources(), (node) =>
      moveBlock(entry, { host: this.#host, link: this.#host.link(node), lane, wasted, signal }),
    );
    await this.#host.store.install(entry);
  }

  /** Notes are few: all are compared. What the primary has not is ended here. */
  async #learnNotes(): Promise<void> {
    const { store } = this.#host;
    const { key } = this.#options;
    const theirs = new Map<string, NoteRow>();
    let asOf = 0;
    for await (const page of this.#pages('notes', 0)) {
      asOf = page.asOf;
      for (const note of page.rows) theirs.set(Buffer.from(note.name).toString('hex'), note);
    }
    const work: Promise<void>[] = [];
    const synthesis = this.#synthesis(asOf);
    for (const { name, value } of await store.notes(key, new Uint8Array(0))) {
      const hex = Buffer.from(name).toString('hex');
      const note = theirs.get(hex);
      if (note === undefined && value.length > 0) work.push(store.install(noteOf(synthesis, name, new Uint8Array(0))));
      if (note !== undefined && compareBytes(note.value, value) === 0) theirs.delete(hex);
    }
    for (const { name, value } of theirs.values()) {
      if (value.length > 0) work.push(store.install(noteOf(synthesis, name, value)));
    }
    await Promise.all(work);
  }

  /** Whether both hold the same; `unknown` if they could not be seen at one commit point. */
  async #compareSums(): Promise<'same' | 'different' | 'unknown'> {
    const { store, clock } = this.#host;
    const { key, signal } = this.#options;
    for (let tries = 0; tries < SUM_TRIES; tries++) {
      const { sum } = await this.#ask('sum', 0, '');
      const ours = await sumOf(store, key);
      if (ours.commit === sum.commit) return sameContents(ours, sum) ? 'same' : 'different';
      await sleep(clock, SUM_PAUSE_MS, signal);
    }
    return 'unknown';
  }

  async *#pages<Kind extends Exclude<PageKind, 'sum'>>(
    kind: Kind,
    above: number,
  ): AsyncGenerator<Extract<Page, { kind: Kind }>, void, void> {
    let after: string | undefined = '';
    while (after !== undefined) {
      const page: Extract<Page, { kind: Kind }> = await this.#ask(kind, above, after);
      const { next }: { next: string | undefined } = page;
      if (next === after) throw new WebdfsError('CORRUPT', `pages of ${kind} do not come to an end`);
      yield page;
      after = next;
    }
  }

  async #ask<Kind extends PageKind>(kind: Kind, above: number, after: string): Promise<Extract<Page, { kind: Kind }>> {
    const { key, ballot, primary, signal } = this.#options;
    const message = encodePageRequest({ ...key, ballot, kind, above, after });
    const answer = await this.#host.link(primary).call(VERB.PAGE, message, { deadlineMs: CALL_MS, signal });
    const page = decodePage(answer, kind);
    await this.#pass(attachedBytes(answer));
    return page;
  }

  #synthesis(sequence: number): Synthesis {
    return { group: this.#options.key, ballot: this.#options.ballot, sequence, timeMs: this.#host.clock.now() };
  }

  #fetchOptions(): FetchOptions {
    const { primary, sources, signal } = this.#options;
    return { primary, sources: sources(), signal };
  }
}

interface Differing<Row> {
  readonly fetch: Row[];
  readonly bury: Row[];
  readonly remove: Row[];
}

function standing(
  row: { readonly sequence: number } | undefined,
): { sequence: number; tombstone: boolean } | undefined {
  return row === undefined ? undefined : { sequence: row.sequence, tombstone: false };
}

/** Waits for all, then throws the first failure: none is left running behind it. */
async function allDone(work: readonly Promise<unknown>[]): Promise<void> {
  for (const one of await Promise.allSettled(work)) if (one.status === 'rejected') throw one.reason;
}
