import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, compareBytes, EMPTY, type NodeId, toHex, utf8 } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import {
  decodeListRequest,
  encodeListAnswer,
  GroupSet,
  type ListRow,
  type NodeListRequest,
  VERB,
} from '@webdfs/replica';
import { GroupRouter } from './router.ts';

import { POLICY, GROUP_BITS, type Handler, Script, ONE, TWO, THREE } from './router-script.ts';

interface Held {
  readonly key: Uint8Array;
  readonly group: number;
}

/** Answers as a node does: rows of the groups it serves, in order, up to `take`. */
function listing(rows: readonly Held[], serves: (group: number) => boolean, revision = 1): Handler {
  return (message, verb) => {
    assert.equal(verb, VERB.LIST);
    const { request }: { request: NodeListRequest } = decodeListRequest(message);
    const wanted = (group: number): boolean => serves(group) && (request.groups?.has(group) ?? true);
    const found = rows
      .filter(
        ({ key, group }) =>
          compareBytes(key, request.from) >= 0 && compareBytes(key, request.before) < 0 && wanted(group),
      )
      .toSorted((a, b) => compareBytes(a.key, b.key));
    const listed: ListRow[] = found
      .slice(0, request.take)
      .map(({ key }) => ({ key, prefix: false, sequence: 1, modifiedMs: 1, flags: 0, summary: new Uint8Array(32) }));
    const covered = new GroupSet(2 ** GROUP_BITS);
    for (let group = 0; group < 2 ** GROUP_BITS; group++) if (wanted(group)) covered.add(group);
    return encodeListAnswer({ rows: listed, covered, next: found[request.take]?.key, revision });
  };
}

const ALL = { policy: POLICY, from: EMPTY, before: Uint8Array.of(0xff), take: 1_000 };
const owner = (group: number): NodeId => asNodeId((group % 3) + 1);

test('pages of any size, put together, give the rows of all nodes once and in order', async (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 30; round++) {
    const script = new Script();
    script.primaryOf = owner;
    const rows = Array.from({ length: random.below(300) }, (_, i) => ({
      key: utf8(`k${String((i * 7919) % 1_009).padStart(4, '0')}`),
      group: random.below(8),
    }));
    for (const node of [ONE, TWO, THREE])
      script.handlers.set(
        node,
        listing(rows, (group) => owner(group) === node),
      );
    const router = script.router();
    const found: Uint8Array[] = [];
    let from: Uint8Array | undefined = EMPTY;
    while (from !== undefined) {
      const take = 1 + random.below(100);
      const page: Awaited<ReturnType<GroupRouter['list']>> = await router.list({ ...ALL, from, take });
      assert.ok(page.rows.length === take || page.next === undefined, 'a page is full unless it is the last');
      found.push(...page.rows.map(({ key }) => key));
      from = page.next;
    }
    const whole = rows.map(({ key }) => key).toSorted(compareBytes);
    assert.deepEqual(found.map(toHex), whole.map(toHex));
  }
});

test('a group that no answer covers is asked again of its new primary', async () => {
  const script = new Script();
  script.primaryOf = owner;
  const rows = [1, 2, 3, 4, 5].map((i) => ({ key: utf8(`k${i}`), group: i }));
  // node 2 has handed group 4 to node 3, and says so by not covering it
  script.handlers.set(
    ONE,
    listing(rows, (group) => owner(group) === ONE),
  );
  script.handlers.set(
    TWO,
    listing(rows, (group) => owner(group) === TWO && group !== 4, 2),
  );
  script.handlers.set(
    THREE,
    listing(rows, (group) => (owner(group) === THREE && script.revision < 2) || (group === 4 && script.revision >= 2)),
  );
  const before = script.primaryOf;
  script.primaryOf = (group) => (group === 4 && script.revision >= 2 ? THREE : before(group));
  const page = await script.router().list(ALL);
  assert.deepEqual(
    page.rows.map(({ key }) => toHex(key)),
    rows.map(({ key }) => toHex(key)),
  );
  assert.deepEqual(script.readThroughs, [2]);
});

test('a page that cannot be completed in time is UNAVAILABLE, never a partial one', async () => {
  const script = new Script();
  script.primaryOf = owner;
  const rows = [1, 2, 3].map((i) => ({ key: utf8(`k${i}`), group: i }));
  script.handlers.set(
    ONE,
    listing(rows, (group) => owner(group) === ONE),
  );
  script.handlers.set(
    TWO,
    listing(rows, (group) => owner(group) === TWO),
  );
  const began = script.clock.now();
  await assert.rejects(script.router().list(ALL), { code: 'UNAVAILABLE' });
  assert.ok(script.clock.now() - began >= 2_000);
});

// ---- blocks ----
