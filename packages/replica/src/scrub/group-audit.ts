import { type Ballot, type GroupKey, type NodeId, type Sequence, toHex, WebdfsError } from '@webdfs/base';
import { groupOf, hashKey } from '@webdfs/placement';
import { type LogEntry, REQUEST_ID_BYTES, SUMMARY_BYTES, type WalkRow } from '@webdfs/store';
import { fromAny } from '../block-transfer.ts';
import { fetchEntry } from '../entry-fetch.ts';
import { blockId } from '../garbage-hints.ts';
import { layoutOf } from '../named.ts';
import { type Layout, unpackSummary } from '../record.ts';
import type { ReplicaHost } from '../replica-host.ts';
import { Turns } from '../turns.ts';
import type { VerifyItem } from '../verify-codec.ts';
import { buriedAt, unionOfBlocks, unionOfRecords } from './group-rows.ts';
import { Inspector, type Question } from './inspector.ts';
import { isGone } from './unnamed.ts';
import { birthOf } from '../conditions.ts';
import type { Judgement, Wrong } from './judgement.ts';
import { isRefusal, orderBurial, orderMend } from './mending.ts';
import { countCopies, emptyTally, noteProblem, type Tally, wrongOf } from './tally.ts';

export interface AuditOptions {
  /** What each member may read of its disk for this. */
  readonly bytesPerSecond: number;
  /** Whether a record is an object, by its key. */
  readonly isObject: (key: Uint8Array) => boolean;
  /** A block that no record names may still be under way for so long, milliseconds. */
  readonly orphanMs: number;
  readonly signal: AbortSignal;
}

/** Records inspected together, and blocks at once. */
const BATCH = 32;
const BLOCKS_AT_ONCE = 4;
/** Tries where a record is replaced while its blocks are looked at. */
const RECORD_TRIES = 4;

/**
 * Counts one group at its primary: every record that any member has, at all of them, with all of its blocks wherever they
 * are, each byte of each copy read now by the node that has it. What is wrong is put right and looked at again.
 */
export class GroupAudit {
  readonly #host: ReplicaHost;
  readonly #group: GroupKey;
  readonly #options: AuditOptions;
  readonly #inspector: Inspector;
  readonly #tally = emptyTally();
  readonly #blocks = new Turns(BLOCKS_AT_ONCE);
  #members: readonly NodeId[] = [];
  #ballot: Ballot = 0;
  #listed = 0;
  #touchedHere = false;

  constructor(host: ReplicaHost, group: GroupKey, options: AuditOptions) {
    this.#host = host;
    this.#group = group;
    this.#options = options;
    this.#inspector = new Inspector(host, options);
  }

  /** Bytes that members have read for it so far. */
  get bytesRead(): number {
    return this.#inspector.bytesRead;
  }

  /**
   * @returns what was found, which is true of exactly these members
   * @throws WebdfsError if the group could not be counted to its end by this node: then nothing is known of it
   */
  async run(): Promise<{ tally: Tally; members: readonly NodeId[] }> {
    const { store, map, self } = this.#host;
    this.#ballot = this.#host.serving(this.#group);
    const { inSync } = map.view.group(this.#group);
    this.#members = [self, ...inSync.filter((node) => node !== self)];
    this.#checkServing();
    const before = store.log(this.#group);
    await this.#countRecords();
    const after = store.log(this.#group);
    const isQuiet = before.commit === after.commit && before.objects === after.objects && !this.#touchedHere;
    if (isQuiet && this.#listed !== after.objects) {
      const what = `${this.#listed} records were counted, the store of node ${self} says ${after.objects}`;
      throw new WebdfsError('CORRUPT', `${what}: its index may need "webdfs fsck --rebuild-index"`);
    }
    await this.#sweepBlocks();
    this.#checkServing();
    const now = map.view.group(this.#group).inSync;
    if (now.join() !== inSync.join()) throw new WebdfsError('CONFLICT', 'its members changed while it was counted');
    return { tally: this.#tally, members: inSync };
  }

  #checkServing(): void {
    const ballot = this.#host.serving(this.#group);
    if (ballot !== 0 && ballot === this.#ballot) return;
    throw new WebdfsError('NOT_PRIMARY', 'its primary changed while it was counted');
  }

  async #inspectOne(members: readonly NodeId[], question: Question): Promise<Judgement> {
    const [inspected] = await this.#inspector.inspect(members, [question]);
    return inspected!.judgement;
  }

  // ---- records ----

  async #countRecords(): Promise<void> {
    let batch: { row: WalkRow; question: Question }[] = [];
    const listing = { members: this.#members, signal: this.#options.signal };
    for await (const { rows, any } of unionOfRecords(this.#host, this.#group, listing)) {
      if (rows[0]?.tombstone === false) this.#listed++;
      if (rows.every((row) => row === undefined || row.tombstone)) continue;
      const item: VerifyItem = { ...this.#group, type: 'record', id: any.key };
      batch.push({ row: any, question: { item, buriedAt: buriedAt(rows) } });
      if (batch.length === BATCH) await this.#countBatch(batch.splice(0));
    }
    await this.#countBatch(batch);
  }

  async #countBatch(batch: readonly { row: WalkRow; question: Question }[]): Promise<void> {
    if (batch.length === 0) return;
    this.#checkServing();
    const questions = batch.map(({ question }) => question);
    const inspected = await this.#inspector.inspect(this.#members, questions);
    for (const [i, { judgement }] of inspected.entries()) {
      const { row, question } = batch[i]!;
      await this.#countRecord(row, question, judgement);
    }
  }

  async #countRecord(row: WalkRow, question: Question, first: Judgement): Promise<void> {
    let judgement = first;
    for (let tries = 1; ; tries++) {
      await this.#put(question, judgement, { what: 'record', members: this.#members, row });
      if (judgement.type === 'gone') return;
      const copies = await this.#copiesOf(row, judgement);
      if (copies !== undefined) {
        const { objects, others } = this.#tally;
        countCopies(this.#options.isObject(row.key) ? objects : others, copies);
        return;
      }
      // replaced meanwhile: the blocks that were looked for belong to nobody any more
      if (tries === RECORD_TRIES)
        throw new WebdfsError('BUSY', 'a record changes faster than its blocks can be counted');
      judgement = await this.#inspectOne(this.#members, question);
    }
  }

  /** Good copies of the object: the fewest of its record and its blocks; undefined if the record was replaced meanwhile. */
  async #copiesOf(row: WalkRow, judgement: Exclude<Judgement, { type: 'gone' }>): Promise<number | undefined> {
    if (judgement.good.length === 0) return 0;
    const entry = await this.#entryOf(row.key, judgement.good);
    if (entry === undefined) return undefined;
    const layout = layoutOf(entry);
    const { size } = unpackSummary(entry.meta.subarray(REQUEST_ID_BYTES, REQUEST_ID_BYTES + SUMMARY_BYTES));
    this.#tally.bytes += size;
    if (layout.type === 'inline') return judgement.good.length;
    let fewest = judgement.good.length;
    const work: Promise<void>[] = [];
    const count = async (id: Uint8Array, number: number): Promise<void> => {
      const copies = await this.#countBlock(row, id, { number, sequence: entry.sequence });
      fewest = Math.min(fewest, copies);
    };
    let number = 0;
    for (const id of blocksOf(layout, size)) {
      const at = number++;
      work.push(this.#blocks.run(() => count(id, at)));
      // bounded: the ids of a large object are made as they are needed
      if (work.length === 4 * BLOCKS_AT_ONCE) await allDone(work.splice(0));
    }
    await allDone(work);
    return this.#isReplaced(row.key, judgement, entry.sequence) ? undefined : fewest;
  }

  #isReplaced(key: Uint8Array, judgement: Exclude<Judgement, { type: 'gone' }>, sequence: Sequence): boolean {
    const isRightHere = judgement.good.includes(this.#host.self);
    const here = this.#host.store.find(key)?.sequence ?? 0;
    return isRightHere ? here !== sequence : here > sequence;
  }

  /** Undefined: no member that had it a moment ago has it still. */
  async #entryOf(key: Uint8Array, good: readonly NodeId[]): Promise<LogEntry | undefined> {
    const ask = (node: NodeId): Promise<LogEntry> => {
      return fetchEntry(this.#host.link(node), this.#group, { type: 'record', key });
    };
    try {
      return await fromAny(good, ask);
    } catch (error) {
      if (error instanceof WebdfsError && error.code === 'NOT_FOUND') return undefined;
      throw error;
    }
  }

  // ---- blocks ----

  /** @returns good copies of it */
  async #countBlock(row: WalkRow, id: Uint8Array, of: { number: number; sequence: Sequence }): Promise<number> {
    const { map, store } = this.#host;
    const { policy } = this.#group;
    const group = { policy, group: groupOf(hashKey(id).high, map.view.map.groupBits) };
    const { inSync } = map.view.group(group);
    if (inSync.length === 0) throw new WebdfsError('UNAVAILABLE', `no member of group ${policy}/${group.group} is up`);
    const question: Question = { item: { ...group, type: 'block', id }, isNamed: true };
    const judgement = await this.#inspectOne(inSync, question);
    // its record went meanwhile, and the block with it
    if (judgement.type === 'gone' && store.find(row.key)?.sequence !== of.sequence) return 0;
    const found: Judgement =
      judgement.type === 'gone'
        ? { type: 'held', sequence: 0, check: 0, good: [], wrong: missingAt(inSync) }
        : judgement;
    await this.#put(question, found, { what: `block ${of.number}`, members: inSync, row });
    return found.type === 'held' || found.type === 'disputed' ? found.good.length : 0;
  }

  /**
   * Blocks that members have and the primary has not. One that a record names is counted and restored with that record;
   * of the others the primary of their key says whether they are gone, as it does for any garbage (protocol, section 8).
   */
  async #sweepBlocks(): Promise<void> {
    const listing = { members: this.#members, signal: this.#options.signal };
    const oldest = this.#host.clock.now() - this.#options.orphanMs;
    for await (const { rows, any } of unionOfBlocks(this.#host, this.#group, listing)) {
      if (rows[0] !== undefined || birthOf(any.id) >= oldest) continue;
      const holders = this.#members.filter((_, i) => rows[i] !== undefined);
      if (!(await isGone(this.#host, this.#group, { id: any.id, holders, signal: this.#options.signal }))) continue;
      if (this.#host.store.findBlock(this.#group, any.id) !== undefined) continue;
      const question: Question = { item: { ...this.#group, type: 'block', id: any.id } };
      const wrong = holders.map((node): Wrong => ({ node, fault: 'surplus' }));
      const row = { key: any.id, hashHigh: 0, hashLow: 0 };
      await this.#put(question, { type: 'gone', wrong }, { what: 'block', members: this.#members, row });
    }
  }

  // ---- putting it right ----

  async #put(
    question: Question,
    judgement: Judgement,
    of: { what: string; members: readonly NodeId[]; row: Pick<WalkRow, 'key' | 'hashHigh' | 'hashLow'> },
  ): Promise<void> {
    const tally = this.#tally;
    const { policy, group } = question.item;
    const named = { policy, group, key: toHex(of.row.key), what: of.what };
    if (judgement.type === 'disputed') {
      tally.left++;
      noteProblem(tally, { ...named, copies: judgement.good.length, wrong: [], mended: false, why: judgement.why });
      return;
    }
    const { wrong } = judgement;
    if (wrong.length === 0) return;
    for (const { fault } of wrong) tally.found[fault]++;
    if (wrong.some(({ node }) => node === this.#host.self)) this.#touchedHere = true;
    const why = await this.#mend(question, judgement, of.row);
    const left = await this.#stillWrong(question, judgement, of.members);
    tally.left += left.length;
    tally.mended += wrong.length - left.length;
    const copies = judgement.type === 'held' ? judgement.good.length : 0;
    const reason = left.length > 0 && why !== undefined ? { why } : {};
    noteProblem(tally, { ...named, copies, wrong: wrongOf(wrong), mended: left.length === 0, ...reason });
  }

  /** @returns why something could not be done */
  async #mend(
    { item }: Question,
    judgement: Exclude<Judgement, { type: 'disputed' }>,
    row: Pick<WalkRow, 'hashHigh' | 'hashLow'>,
  ): Promise<string | undefined> {
    const { signal } = this.#options;
    let why: string | undefined;
    if (judgement.type === 'held' && judgement.good.length === 0) return 'there is no good copy';
    for (const { node } of judgement.wrong) {
      try {
        if (judgement.type === 'held') {
          const { sequence, check, good: sources } = judgement;
          await orderMend(this.#host, node, { item, sequence, check, sources }, signal);
        } else {
          this.#checkServing();
          const { hashHigh, hashLow } = row;
          const asOf = this.#host.store.log(item).commit;
          await orderBurial(this.#host, node, { item, hashHigh, hashLow, asOf, ballot: this.#ballot }, signal);
        }
      } catch (error) {
        if (!isRefusal(error)) throw error;
        why = error.message;
      }
    }
    return why;
  }

  async #stillWrong(
    question: Question,
    before: Exclude<Judgement, { type: 'disputed' }>,
    members: readonly NodeId[],
  ): Promise<readonly Wrong[]> {
    if (before.type === 'held' && before.good.length === 0) return before.wrong;
    const judgement = await this.#inspectOne(members, question);
    return judgement.type === 'disputed' ? before.wrong : judgement.wrong;
  }
}

function missingAt(nodes: readonly NodeId[]): Wrong[] {
  return nodes.map((node) => ({ node, fault: 'missing' }));
}

function* blocksOf(layout: Exclude<Layout, { type: 'inline' }>, size: number): Generator<Uint8Array> {
  const runs = layout.type === 'blocks' ? [{ attempt: layout.attempt, size }] : layout.parts;
  for (const { attempt, size: bytes } of runs) {
    const count = Math.ceil(bytes / layout.blockBytes);
    for (let number = 0; number < count; number++) yield blockId(attempt, number);
  }
}

async function allDone(work: readonly Promise<void>[]): Promise<void> {
  for (const one of await Promise.allSettled(work)) if (one.status === 'rejected') throw one.reason;
}
