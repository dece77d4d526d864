import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asGroupId,
  asNodeId,
  asPolicyId,
  type GroupKey,
  type NodeId,
  silentLog,
  sleep,
  systemClock,
  WebdfsError,
} from '@webdfs/base';
import type { Link, Message } from '@webdfs/wire';
import { decodePageRequest } from '../learner-codec.ts';
import type { ReplicaHost } from '../replica-host.ts';
import { VERB } from '../verbs.ts';
import { decodeNodeScrub, encodeScrubRequest, type NodeScrub, type ScrubRequest } from './scrub-codec.ts';
import { type ScrubLimits, Scrubber } from './scrubber.ts';

const POLICY = asPolicyId(1);
const GROUPS = 16;
const QUICK = { lookMs: 1, saveMs: 1, surveyMs: 3_600_000 };
const PASS = { id: 5, bytesPerSecond: 2 ** 34 };

/** A node that serves empty groups, alone; what survives it is its disk. */
class LonelyNode implements Disposable {
  readonly asked: number[] = [];
  /** Groups whose members cannot be asked. */
  readonly silent = new Set<number>();
  members: NodeId[] = [asNodeId(1)];
  readonly scrubber: Scrubber;
  readonly #files: Map<string, Uint8Array>;

  constructor(files: Map<string, Uint8Array>, limits: Partial<ScrubLimits> = {}) {
    this.#files = files;
    this.scrubber = new Scrubber(this.#host() as unknown as ReplicaHost, { ...QUICK, ...limits });
    this.scrubber.start();
  }

  #host(): Record<keyof Pick<ReplicaHost, 'clock' | 'log' | 'self' | 'served' | 'serving' | 'link'>, unknown> {
    const groups = Array.from({ length: GROUPS }, (_, group): GroupKey => ({
      policy: POLICY,
      group: asGroupId(group),
    }));
    const view = {
      revision: 7,
      map: { policies: [{ id: POLICY, copies: 1 }], groupBits: 4 },
      group: () => ({ inSync: this.members }),
      nodes: () => [asNodeId(1)],
      live: () => undefined,
    };
    const log = { commit: 0, objects: 0, blocks: 0, bytes: 0 };
    const facts = { volumes: 1, volumeBytes: 1, suspect: false };
    const store = {
      facts: () => facts,
      log: () => log,
      pace: () => ({ take: () => Promise.resolve() }),
      loadFile: (name: string) => Promise.resolve(this.#files.get(name)),
      saveFile: (name: string, bytes: Uint8Array) => Promise.resolve(void this.#files.set(name, bytes)),
      walkRecords: () => Promise.resolve({ rows: [], next: undefined }),
      walkBlocks: () => Promise.resolve({ rows: [], next: undefined }),
      scrub: ({ done }: { done: Set<number> }) => Promise.resolve(void done.add(1)),
    };
    const call = async (verb: number, message: Message): Promise<Message> => {
      assert.equal(verb, VERB.COPIES);
      const { group } = decodePageRequest(message);
      if (this.silent.has(group)) throw new WebdfsError('PEER_LOST', 'the member is away');
      if (!this.asked.includes(group)) this.asked.push(group);
      return await this.scrubber.onCopies(message);
    };
    const host = {
      self: asNodeId(1),
      clock: systemClock,
      log: silentLog,
      map: { view },
      store,
      served: () => groups,
      serving: () => 1,
      link: () => ({ call }) as unknown as Link,
    };
    return host;
  }

  async ask(request: Partial<ScrubRequest> = {}): Promise<NodeScrub> {
    return decodeNodeScrub(await this.scrubber.onScrub(encodeScrubRequest({ revision: 7, ...request })));
  }

  async until(holds: (said: NodeScrub) => boolean): Promise<NodeScrub> {
    for (;;) {
      const said = await this.ask().catch((error: unknown) => {
        assert.ok(error instanceof WebdfsError && error.code === 'UNAVAILABLE', String(error));
      });
      if (said !== undefined && holds(said)) return said;
      await sleep(systemClock, 1);
    }
  }

  [Symbol.dispose](): void {
    this.scrubber.stop();
  }
}

function counted(said: NodeScrub): number[] {
  const bits = said.policies[0]!.counted;
  return Array.from({ length: GROUPS }, (_, group) => group).filter((group) => bits[group >>> 3]! & (1 << (group & 7)));
}

test('a pass goes on where it was after a restart', async () => {
  const files = new Map<string, Uint8Array>();
  {
    using node = new LonelyNode(files);
    for (let group = 8; group < GROUPS; group++) node.silent.add(group);
    await node.until(() => true);
    await node.ask({ pass: PASS });
    await node.until((said) => counted(said).length === 8);
    const kept = (): boolean =>
      Buffer.from(files.get('scrub') ?? [])
        .toString()
        .split('"1"').length === 9;
    while (!kept()) await sleep(systemClock, 1);
  }
  using again = new LonelyNode(files);
  const end = await again.until(({ state }) => state === 'done');
  assert.equal(counted(end).length, GROUPS);
  assert.deepEqual(
    again.asked.toSorted((a, b) => a - b),
    Array.from({ length: 8 }, (_, i) => 8 + i),
  );
});

test('groups that have other members than were counted are counted anew', async () => {
  using node = new LonelyNode(new Map());
  await node.until(() => true);
  await node.ask({ pass: PASS });
  await node.until(({ state }) => state === 'done');
  node.asked.length = 0;
  node.members = [1, 2].map(asNodeId);
  assert.deepEqual(counted(await node.ask()), []);
  await node.until((said) => counted(said).length === GROUPS);
  assert.equal(node.asked.length, GROUPS);
});

test('a group whose members cannot be asked is not counted, and the reason is told', async () => {
  using node = new LonelyNode(new Map());
  node.silent.add(3);
  await node.until(() => true);
  await node.ask({ pass: PASS });
  const said = await node.until(({ reasons, volumes }) => reasons.length > 0 && volumes.done);
  assert.deepEqual(said.reasons, [{ policy: 1, group: 3, why: 'the member is away' }]);
  const stuck = await node.until(({ state }) => state === 'stuck');
  assert.ok(!counted(stuck).includes(3));
});

test('a later pass begins anew, an earlier one is not gone back to', async () => {
  using node = new LonelyNode(new Map());
  await node.until(() => true);
  await node.ask({ pass: PASS });
  await node.until(({ state }) => state === 'done');
  const begun = await node.ask({ pass: { ...PASS, id: 6 } });
  assert.deepEqual([begun.pass?.id, begun.state, counted(begun).length], [6, 'working', 0]);
  assert.equal((await node.ask({ pass: PASS })).pass?.id, 6);
  await node.until(({ state }) => state === 'done');
});

test('a pass begins by itself when the calendar says so, and not before the node has rested', async () => {
  using rested = new LonelyNode(new Map(), { everyMs: 86_400_000, restMs: 0 });
  const said = await rested.until(({ pass }) => pass !== undefined);
  assert.equal(said.pass!.id % 86_400_000, 0);
  using fresh = new LonelyNode(new Map(), { everyMs: 86_400_000, restMs: 3_600_000 });
  await fresh.until(() => true);
  for (let turn = 0; turn < 20; turn++) await sleep(systemClock, 1);
  assert.equal((await fresh.ask()).pass, undefined);
});
