import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asNodeId, asPolicyId, codeOf, type GroupKey } from '@webdfs/base';
import { decodeGroupSizes, encodeGroupSizesRequest, MAX_SIZED_GROUPS, serveGroupSizes } from './group-sizes.ts';
import type { ReplicaHost } from './replica-host.ts';

const policy = asPolicyId(1);

/** Primary of every third group; each has a thousand times its number of bytes. */
function aHost(): Parameters<typeof serveGroupSizes>[0] {
  const view = {
    map: { policies: [{ id: policy }], groupBits: 5 },
    group: ({ group }: GroupKey) => ({ primary: asNodeId(group % 3 === 0 ? 1 : 2) }),
  };
  const store = { log: ({ group }: GroupKey) => ({ bytes: group * 2 ** 40 }) };
  return { self: asNodeId(1), map: { view }, store } as unknown as ReplicaHost;
}

test('a node tells the bytes of those groups of a range that it is primary of, within the groups there are', () => {
  const range = { policy, first: 10, count: 100 };
  const told: [number, number][] = [];
  decodeGroupSizes(serveGroupSizes(aHost(), encodeGroupSizesRequest(range)), range, (...row) => told.push(row));
  const wanted = [12, 15, 18, 21, 24, 27, 30].map((group) => [asGroupId(group), group * 2 ** 40]);
  assert.deepEqual(told, wanted);
});

test('of a policy that it does not know it tells nothing; too many are refused', () => {
  const unknown = { policy: asPolicyId(7), first: 0, count: 32 };
  decodeGroupSizes(serveGroupSizes(aHost(), encodeGroupSizesRequest(unknown)), unknown, () => assert.fail());
  assert.throws(
    () => serveGroupSizes(aHost(), encodeGroupSizesRequest({ policy, first: 0, count: MAX_SIZED_GROUPS + 1 })),
    (error) => codeOf(error) === 'TOO_LARGE',
  );
  const range = { policy, first: 0, count: 32 };
  const answer = serveGroupSizes(aHost(), encodeGroupSizesRequest(range));
  assert.throws(
    () => decodeGroupSizes(answer, { ...range, count: 3 }, () => undefined),
    (error) => ['CORRUPT', 'TOO_LARGE'].includes(codeOf(error) ?? ''),
  );
});
