import assert from 'node:assert/strict';
import { compareBytes, equalBytes, type GroupKey, type SeededRandom, toHex } from '@webdfs/base';
import { addDigest, digestOf } from '../digest.ts';
import { type LogEntry, REQUEST_ID_BYTES, SUMMARY_BYTES } from '../entry.ts';
import type { RecordRow, Store, WalkRow } from '../store.ts';
import { allKeys, allNotes } from './entries.ts';
import { type Content, type GroupModel, sameEntry, type Sent } from './model.ts';

function nameOf(group: GroupKey): string {
  return `group ${group.policy}.${group.group}`;
}

/** Whether a row is the one that an entry's application makes. */
export function checkRow(row: RecordRow, { entry }: Sent): void {
  assert.equal(row.sequence, entry.sequence);
  assert.equal(row.flags, entry.flags);
  assert.equal(row.modifiedMs, entry.timeMs);
  assert.ok(equalBytes(row.key, entry.key));
  assert.ok(equalBytes(row.summary, entry.meta.subarray(REQUEST_ID_BYTES, REQUEST_ID_BYTES + SUMMARY_BYTES)));
}

async function checkRecords(store: Store, { key: group }: GroupModel, { records }: Content): Promise<void> {
  for (const key of allKeys(group)) {
    const row = store.find(key);
    const expected = records.get(toHex(key));
    const what = `${nameOf(group)} key ${toHex(key)}`;
    if (expected === undefined) {
      assert.equal(row?.sequence, undefined, `${what} is gone`);
      continue;
    }
    assert.equal(row?.sequence, expected.entry.sequence, `${what} is here`);
    checkRow(row!, expected);
    assert.ok(sameEntry(await store.read(row!), expected.entry), `${what} reads as it was written`);
  }
}

async function checkList(store: Store, { key: group }: GroupModel, { records }: Content): Promise<void> {
  const keys = allKeys(group).sort(compareBytes);
  const from = keys[0]!.subarray(0, 4);
  const before = from.slice();
  before[3]! += 1;
  const listed: string[] = [];
  let next: Uint8Array | undefined = from;
  while (next !== undefined) {
    const page: Awaited<ReturnType<Store['list']>> = await store.list({ from: next, before, limit: 100, take: 3 });
    for (const row of page.rows) {
      listed.push(toHex(row.key));
      checkRow(row, records.get(toHex(row.key))!);
    }
    next = page.next;
  }
  assert.deepEqual(
    listed,
    keys.map(toHex).filter((name) => records.has(name)),
    `listing of ${nameOf(group)}`,
  );
}

async function checkWalk(store: Store, { key: group }: GroupModel, { records }: Content): Promise<void> {
  const walked: WalkRow[] = [];
  let after: string | undefined;
  do {
    const page: Awaited<ReturnType<Store['walkRecords']>> = await store.walkRecords(group, after, 3);
    walked.push(...page.rows);
    after = page.next;
  } while (after !== undefined);
  for (const [i, row] of walked.entries()) {
    const before = walked[i - 1];
    if (before === undefined) continue;
    const order = before.hashHigh - row.hashHigh || before.hashLow - row.hashLow || compareBytes(before.key, row.key);
    assert.ok(order < 0, 'a walk goes up');
  }
  const live = walked.filter((row) => !row.tombstone);
  assert.equal(live.length, records.size, `walk of ${nameOf(group)}`);
  for (const row of live) assert.equal(row.sequence, records.get(toHex(row.key))?.entry.sequence);
  for (const row of walked) if (row.tombstone) assert.ok(!records.has(toHex(row.key)));
}

async function checkNotes(store: Store, { key: group }: GroupModel, { notes }: Content): Promise<void> {
  for (const name of allNotes()) {
    const value = store.note(group, name);
    const expected = notes.get(toHex(name));
    assert.equal(value === undefined, expected === undefined, `${nameOf(group)} note ${toHex(name)}`);
    if (value !== undefined) assert.ok(equalBytes(value, expected!.entry.body));
  }
  assert.equal((await store.notes(group, Uint8Array.of(1))).length, notes.size);
}

async function checkBlocks(store: Store, model: GroupModel, { blocks }: Content, random: SeededRandom): Promise<void> {
  const group = model.key;
  for (const id of model.blockIds) {
    const row = store.findBlock(group, id);
    const expected = blocks.get(toHex(id));
    assert.equal(row?.sequence, expected?.entry.sequence, `${nameOf(group)} block ${toHex(id)}`);
    if (row === undefined || expected === undefined) continue;
    const bytes = expected.bytes!;
    assert.equal(row.size, bytes.length);
    const from = random.below(row.size + 1);
    const target = new Uint8Array(random.below(row.size - from + 1));
    await store.readBlock(row, from, target);
    assert.ok(equalBytes(target, bytes.subarray(from, from + target.length)), `range of block ${toHex(id)}`);
    const whole = new Uint8Array(row.size);
    await store.readBlock(row, 0, whole);
    assert.ok(equalBytes(whole, bytes), `block ${toHex(id)}`);
    assert.ok(sameEntry(await store.readBlockEntry(row), expected.entry));
  }
  const walked: string[] = [];
  let after: Uint8Array | undefined;
  do {
    const page: Awaited<ReturnType<Store['walkBlocks']>> = await store.walkBlocks(group, after, 2);
    walked.push(...page.rows.map((row) => toHex(row.id)));
    after = page.next;
  } while (after !== undefined);
  assert.deepEqual(walked, [...blocks.keys()].toSorted());
}

function checkSums(store: Store, { key: group }: GroupModel, { records, blocks }: Content): void {
  const log = store.log(group);
  let digest = 0;
  for (const { entry } of [...records.values(), ...blocks.values()]) {
    digest = addDigest(digest, digestOf(entry.hashHigh, entry.hashLow, entry.sequence));
  }
  assert.deepEqual(
    { objects: log.objects, blocks: log.blocks, digest: log.digest },
    { objects: records.size, blocks: blocks.size, digest },
    `sums of ${nameOf(group)}`,
  );
}

/** Compares everything that can be asked of a group with what its entries up to the commit point amount to. */
export async function checkContent(store: Store, model: GroupModel, random: SeededRandom): Promise<void> {
  const content = model.contentAt(store.log(model.key).commit);
  await checkRecords(store, model, content);
  await checkList(store, model, content);
  await checkWalk(store, model, content);
  await checkNotes(store, model, content);
  await checkBlocks(store, model, content, random);
  checkSums(store, model, content);
}

/**
 * After a restart: what came back must be what was answered, and may be what was not; the model becomes what it is.
 * Commits all of it in the end, as the protocol would, and compares again.
 */
export async function recoverGroup(store: Store, model: GroupModel, how: Recovered): Promise<void> {
  if (!isThereAgain(store, model)) return checkContent(store, model, how.random);
  const { commit, last } = store.log(model.key);
  assert.ok(commit <= model.asked, `${nameOf(model.key)}: commit ${commit}, asked for ${model.asked}`);
  const pending = await checkPending(store, model, how);
  settleInstalled(store, model);
  assert.equal(last, commit + pending.length);
  if (how.rebuilt || commit < model.base) adoptRebuilt(store, model, pending);
  else model.adopt(commit, pending);
  // Whoever goes on with the group does so under a new ballot.
  model.ballot += 1;
  checkMark(store, model);
  await checkContent(store, model, how.random);
  if (how.random.below(3) === 0) return;
  model.asked = model.committed = model.end;
  store.commit(model.key, model.end);
  assert.equal(store.log(model.key).commit, model.end);
  await checkContent(store, model, how.random);
}

/**
 * An index that was lost knows commit points only from heads, and compaction has dropped entries that later ones had
 * replaced: what was committed before must be committed again before it can be compared.
 */
function adoptRebuilt(store: Store, model: GroupModel, pending: readonly Sent[]): void {
  for (const sent of pending) model.cameBack(sent);
  const { last } = store.log(model.key);
  const target = Math.min(model.committed, last);
  store.commit(model.key, target);
  const { commit } = store.log(model.key);
  assert.ok(commit >= target);
  const left = pending.filter(({ entry }) => entry.sequence > commit);
  const known = Math.min(model.committed, model.answeredEnd);
  if (commit >= Math.max(known, model.base)) model.adopt(commit, left);
  else model.startOver(commit, model.contentAt(known), left);
}

/** How a store came back. */
export interface Recovered {
  readonly random: SeededRandom;
  /** The index was lost. */
  readonly rebuilt: boolean;
}

/** Resolves a drop or a rebase that the crash interrupted: whole, or not at all. */
function isThereAgain(store: Store, model: GroupModel): boolean {
  const log = store.log(model.key);
  if (model.state === 'dropping') {
    if (log.last === 0 && log.objects + log.blocks === 0 && log.mark === undefined) {
      model.forget();
      return false;
    }
    model.state = 'here';
  }
  if (model.state === 'rebasing') {
    if (log.commit === model.nextBase) model.startAt(model.nextBase);
    else model.state = 'here';
  }
  return true;
}

export function textOf(entry: LogEntry | undefined): string {
  if (entry === undefined) return 'nothing';
  const { kind, group, sequence, ballot, commit, key } = entry;
  return `group ${group} entry ${sequence} of ballot ${ballot}, kind ${kind}, commit ${commit}, key ${toHex(key)}`;
}

async function checkPending(store: Store, model: GroupModel, how: Recovered): Promise<Sent[]> {
  const { commit } = store.log(model.key);
  const pending = await store.pending(model.key);
  const found = pending.map((entry, i) => {
    assert.equal(entry.sequence, commit + 1 + i, `${nameOf(model.key)} has no gap`);
    const candidates = [model.at(entry.sequence), model.past.get(entry.sequence), ...model.doubtful].filter(
      (sent) => sent !== undefined,
    );
    const sent = candidates.find((candidate) => sameEntry(candidate.entry, entry));
    const known = candidates.map((candidate) => textOf(candidate.entry)).join('; ');
    assert.ok(sent !== undefined, `${nameOf(model.key)}: ${textOf(entry)} is pending, known are: ${known}`);
    return sent;
  });
  for (let sequence = commit + 1; sequence <= model.answeredEnd; sequence++) {
    const expected = model.at(sequence);
    if (expected === undefined) continue;
    const isHere = found.includes(expected);
    // Applied, and then compacted away with its effect or into a place that the content check asks for.
    const isApplied = how.rebuilt && sequence <= model.committed;
    assert.ok(
      isHere || isApplied,
      `${nameOf(model.key)}: answered entry ${sequence} is lost, there are ${commit} applied and ${found.length} pending`,
    );
  }
  return found;
}

/** Of what a learner was given and had not answered, what has arrived counts from now on. */
function settleInstalled(store: Store, model: GroupModel): void {
  for (const sent of model.installing.toSorted((a, b) => a.entry.sequence - b.entry.sequence)) {
    const { entry } = sent;
    const before = model.contentAt(model.base);
    model.installed.push(sent);
    const after = model.contentAt(model.base);
    const name = toHex(entry.key);
    const row = store.find(entry.key);
    const block = entry.key.length === 20 ? store.findBlock(model.key, entry.key) : undefined;
    const note = store.note(model.key, entry.key);
    const fits = (content: Content): boolean =>
      content.records.get(name)?.entry.sequence === row?.sequence &&
      content.blocks.get(name)?.entry.sequence === block?.sequence &&
      (content.notes.get(name) === undefined) === (note === undefined) &&
      (note === undefined || equalBytes(note, content.notes.get(name)!.entry.body));
    if (!fits(after) && fits(before)) model.installed.pop();
  }
  model.installing = [];
}

function checkMark(store: Store, model: GroupModel): void {
  const { mark } = store.log(model.key);
  const allowed = [model.mark, ...model.marks].map((candidate) => JSON.stringify(candidate));
  assert.ok(allowed.includes(JSON.stringify(mark)), `${nameOf(model.key)}: mark ${JSON.stringify(mark)}`);
  model.mark = mark;
  model.marks = [];
}
