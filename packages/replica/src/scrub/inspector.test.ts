import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asNodeId, asPolicyId, type NodeId, systemClock, utf8 } from '@webdfs/base';
import { type Link, type Message } from '@webdfs/wire';
import type { ReplicaHost } from '../replica-host.ts';
import { Inspector } from './inspector.ts';
import { decodeLooks, encodeLookAnswer, type Look } from './look-codec.ts';

const MEMBERS = [1, 2, 3].map(asNodeId);
const ITEM = { policy: asPolicyId(1), group: asGroupId(1), type: 'record', id: utf8('0001key') } as const;

/** Members that answer by a script: what each says when it is asked for the nth time. */
function aHost(script: (node: NodeId, time: number, isRead: boolean) => Look): Pick<ReplicaHost, 'clock' | 'link'> {
  const times = new Map<NodeId, number>();
  const link = (node: NodeId): Link => {
    const call = (_verb: number, message: Message): Promise<Message> => {
      const { items, bytesPerSecond } = decodeLooks(message);
      const time = times.get(node) ?? 0;
      times.set(node, time + 1);
      const looks = items.map(() => script(node, time, bytesPerSecond > 0));
      return Promise.resolve(encodeLookAnswer({ suspect: false, looks }));
    };
    return { peer: node, call } as unknown as Link;
  };
  return { clock: systemClock, link };
}

async function inspect(script: Parameters<typeof aHost>[0]): ReturnType<typeof first> {
  return await first(
    new Inspector(aHost(script) as ReplicaHost, { bytesPerSecond: 9, signal: new AbortController().signal }),
  );
}

async function first(inspector: Inspector): Promise<Awaited<ReturnType<Inspector['inspect']>>[number]['judgement']> {
  const [inspected] = await inspector.inspect(MEMBERS, [{ item: ITEM }]);
  return inspected!.judgement;
}

function has(sequence: number, commit = sequence): Look {
  if (sequence === 0) return { state: 'absent', sequence, bytes: 0, check: 0, commit };
  return { state: 'intact', sequence, bytes: 1, check: sequence, commit };
}

test('a member that has not yet applied a write is waited for, not blamed', async () => {
  const judgement = await inspect((node, time) => (node === 2 && time < 3 ? has(0, 4) : has(5)));
  assert.deepEqual(judgement.type === 'held' && judgement.good, MEMBERS);
});

test('a member that has applied everything and lacks it is blamed at once', async () => {
  const judgement = await inspect((node) => (node === 2 ? has(0, 5) : has(5)));
  assert.deepEqual(judgement.type === 'held' && judgement.wrong, [{ node: 2, fault: 'missing' }]);
});

test('a key that is written all the time is right at members that have any of its versions', async () => {
  // each time that the primary is asked it has a version more; the others are one behind
  const judgement = await inspect((node, time) => has(10 + time * 2 - (node === 1 ? 0 : 1), 10 + time * 2));
  assert.deepEqual(judgement.type === 'held' && judgement.good, MEMBERS);
});

test('a member that stands still while a key is written is not right', async () => {
  await assert.rejects(
    inspect((node, time) => (node === 3 ? has(3, 100) : has(10 + time, 100))),
    { code: 'BUSY' },
  );
});

test('a key that is deleted while it is looked at is gone, with nobody to blame', async () => {
  const judgement = await inspect((node, time) => (time === 0 && node !== 3 ? has(5) : has(0, 6)));
  assert.deepEqual(judgement, { type: 'gone', wrong: [] });
});

test('damage counts though it was repaired before the members could be compared', async () => {
  const broken: Look = { ...has(5), state: 'damaged', check: 0 };
  const judgement = await inspect((node, time) => {
    if (node === 3 && time === 0) return has(0, 4);
    return node === 2 && time === 0 ? broken : has(5);
  });
  assert.deepEqual(judgement.type === 'held' && judgement.wrong, [{ node: 2, fault: 'damaged' }]);
});
