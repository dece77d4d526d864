import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asPolicyId, compareBytes, toHex, utf8, WebdfsError } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import type { RecordRow, Store } from '@webdfs/store';
import type { NodeListAnswer, NodeListRequest } from './list-codec.ts';
import { GroupSet } from './list-codec.ts';
import { behindPrefix, listPage, type ListSource } from './list-page.ts';

const POLICY = asPolicyId(1);
const GROUPS = 8;

/** Rows of a sorted table, listed as a store does. */
function tableOf(keys: readonly string[], groupOf: (key: string) => number): Pick<Store, 'list'> & { calls: number } {
  const sorted = keys.map((key) => ({ bytes: utf8(key), key })).toSorted((a, b) => compareBytes(a.bytes, b.bytes));
  const rows: RecordRow[] = sorted.map(({ bytes, key }, i) => ({
    policy: POLICY,
    group: asGroupId(groupOf(key)),
    key: bytes,
    sequence: i + 1,
    flags: 0,
    modifiedMs: 1,
    summary: new Uint8Array(32),
    volume: 1,
    place: 0,
    entryBytes: 100,
  }));
  return {
    calls: 0,
    async list({ from, before, limit, accept, take }) {
      this.calls++;
      const found: RecordRow[] = [];
      let looked = 0;
      for (const row of rows) {
        if (compareBytes(row.key, from) < 0) continue;
        if (compareBytes(row.key, before) >= 0) return { rows: found, next: undefined };
        if (looked >= limit || found.length >= take) return { rows: found, next: row.key };
        looked++;
        if (accept === undefined || accept(row)) found.push(row);
      }
      return { rows: found, next: undefined };
    },
  };
}

/** A node that serves some groups, in ballot 7. */
function sourceOf(store: Pick<Store, 'list'>, served: readonly number[], more: Partial<ListSource> = {}): ListSource {
  return {
    store,
    groupCount: GROUPS,
    servingBallots: () => Float64Array.from({ length: GROUPS }, (_, group) => (served.includes(group) ? 7 : 0)),
    revision: () => 5,
    ...more,
  };
}

function aRequest(more: Partial<NodeListRequest> = {}): NodeListRequest {
  return { policy: POLICY, from: utf8(''), before: Uint8Array.of(0xff), take: 1_000, ...more };
}

const names = (answer: NodeListAnswer): string[] => answer.rows.map(({ key }) => new TextDecoder().decode(key));
const byLength = (key: string): number => key.length % GROUPS;

/** What a page must be, computed from all keys at once. */
function expected(keys: readonly string[], delimiter: string, prefixLength: number): string[] {
  const rows = keys.map((key) => {
    const at = key.indexOf(delimiter, prefixLength);
    return at < 0 ? key : key.slice(0, at + delimiter.length);
  });
  return [...new Set(rows)].toSorted((a, b) => compareBytes(utf8(a), utf8(b)));
}

test('pages of any size, collapsed or not, put together give every row of the served groups once', async (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 40; round++) {
    const keys = [...new Set(Array.from({ length: 200 }, () => aKey(random)))];
    const served = [0, 1, 2, 3, 4, 5, 6, 7].filter(() => random.below(3) > 0);
    const mine = keys.filter((key) => served.includes(byLength(key)));
    const source = sourceOf(tableOf(keys, byLength), served, { scanRows: 1 + random.below(60) });
    const collapse = random.below(2) === 0 ? undefined : { prefixLength: random.below(3), delimiter: utf8('/') };
    const found: string[] = [];
    let from: Uint8Array | undefined = utf8('');
    while (from !== undefined) {
      const take = 1 + random.below(20);
      const page: NodeListAnswer = await listPage(source, aRequest({ from, take, ...(collapse && { collapse }) }));
      assert.ok(page.rows.length <= take);
      found.push(...names(page));
      from = page.next;
    }
    const whole = expected(mine, collapse === undefined ? '\n' : '/', collapse?.prefixLength ?? 0);
    assert.deepEqual(found, whole);
  }
});

function aKey(random: { below: (limit: number) => number }): string {
  let key = '';
  for (let i = 1 + random.below(7); i > 0; i--) key += 'ab/~'[random.below(4)]!;
  return key;
}

test('a prefix with many keys costs a seek, not a walk', async () => {
  const keys = Array.from({ length: 5_000 }, (_, i) => `big/${i}`).concat('z');
  const table = tableOf(keys, () => 0);
  const page = await listPage(sourceOf(table, [0]), aRequest({ collapse: { prefixLength: 0, delimiter: utf8('/') } }));
  assert.deepEqual(names(page), ['big/', 'z']);
  assert.ok(table.calls <= 3, `${table.calls} calls`);
});

test('a group that is lost during the scan is not covered and none of its rows are shown', async () => {
  const keys = ['a', 'bb', 'c', 'dd'];
  let asked = 0;
  const source = sourceOf(tableOf(keys, byLength), [], {
    servingBallots: () => Float64Array.of(0, 7, asked++ === 0 ? 7 : 9, 0, 0, 0, 0, 0),
  });
  const page = await listPage(source, aRequest());
  assert.deepEqual(names(page), ['a', 'c']);
  assert.deepEqual([page.covered.has(1), page.covered.has(2)], [true, false]);
});

test('a prefix found in a lost group does not hide the rows of a served one', async () => {
  const keys = ['d/x', 'd/yy'];
  let asked = 0;
  const source = sourceOf(tableOf(keys, byLength), [], {
    servingBallots: () => Float64Array.of(0, 0, 0, asked++ === 0 ? 7 : 0, 7, 0, 0, 0),
  });
  const page = await listPage(source, aRequest({ collapse: { prefixLength: 0, delimiter: utf8('/') } }));
  assert.deepEqual(names(page), ['d/']);
  assert.equal(page.covered.has(3), false);
  assert.equal(page.covered.has(4), true);
});

test('a node that loses groups again and again answers NOT_PRIMARY with its revision', async () => {
  const keys = Array.from({ length: 8 }, (_, i) => `d/${'x'.repeat(i)}`);
  const source = sourceOf(tableOf(keys, byLength), [], { servingBallots: alternating() });
  const page = listPage(source, aRequest({ collapse: { prefixLength: 0, delimiter: utf8('/') } }));
  await assert.rejects(
    page,
    (error) => error instanceof WebdfsError && error.code === 'NOT_PRIMARY' && error.details['revision'] === 5,
  );
});

/** Every group in a ballot of its own each time it is asked, but only the one that comes next. */
function alternating(): ListSource['servingBallots'] {
  let ballot = 1;
  let call = 0;
  return () => {
    // the group found first is lost at the end of each scan
    const step = Math.floor(call / 2);
    const ending = call++ % 2 === 1;
    return Float64Array.from({ length: GROUPS }, (_, group) => {
      const first = [2, 3, 4, 5][step];
      return group === first && ending ? ++ballot : 1_000;
    });
  };
}

test('only the groups asked for are scanned and covered', async () => {
  const keys = ['a', 'bb', 'ccc'];
  const groups = new GroupSet(GROUPS);
  groups.add(2);
  const page = await listPage(sourceOf(tableOf(keys, byLength), [1, 2, 3]), aRequest({ groups }));
  assert.deepEqual(names(page), ['bb']);
  assert.deepEqual(page.covered.missing(GROUPS), [0, 1, 3, 4, 5, 6, 7]);
});

test('the key behind a prefix is above all that begin with it and below all others that were', () => {
  assert.equal(toHex(behindPrefix(Uint8Array.of(1, 0x2f))), '0130');
  assert.equal(toHex(behindPrefix(Uint8Array.of(1, 0xff, 0xff))), '02');
  assert.ok(compareBytes(behindPrefix(Uint8Array.of(0xff)), new Uint8Array(1_100).fill(0xff)) > 0);
});
