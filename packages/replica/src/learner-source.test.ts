import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asGroupId,
  asNodeId,
  asPolicyId,
  type Ballot,
  ManualClock,
  SeededRandom,
  silentLog,
  WebdfsError,
} from '@webdfs/base';
import { encodeLearnAnswer } from './learner-codec.ts';
import { LearnerSource } from './learner-source.ts';
import type { ReplicaHost } from './replica-host.ts';

const KEY = { policy: asPolicyId(1), group: asGroupId(7) };
const BALLOT = 29 as Ballot;
const LEARNER = asNodeId(5);

/** A primary of one group that lacks node 5, which holds what it should already. */
class Primary {
  readonly clock = new ManualClock();
  readonly told: string[] = [];
  readonly source: LearnerSource;
  serving: Ballot = BALLOT;
  paused = false;
  goal = [LEARNER, asNodeId(1)];
  isBroken = false;
  looks = 0;

  constructor() {
    const view = {
      map: { paused: false },
      live: () => ({ session: 9 }),
      group: () => ({
        ballot: BALLOT,
        primary: 1,
        copies: 2,
        goal: this.goal,
        inSync: [1, 2],
        members: [1, 2],
        eligible: [],
      }),
    };
    Object.defineProperty(view.map, 'paused', { get: () => this.paused });
    const host = {
      self: asNodeId(1),
      clock: this.clock,
      random: new SeededRandom(1),
      log: silentLog,
      map: { view },
      store: {
        notes: async () => {
          if (this.isBroken) throw new WebdfsError('DISK_FAILED', 'the index is lost');
          return [];
        },
        log: () => ({ commit: 0, objects: 0, blocks: 0, digest: 0 }),
      },
      link: () => ({ call: async () => encodeLearnAnswer(['equal']) }),
      serving: () => {
        this.looks++;
        return this.serving;
      },
      served: () => [KEY],
      startLearner: (_: unknown, node: number) => {
        this.told.push(node === LEARNER ? 'start' : `start ${node}`);
        return { sequence: 0, ballot: 0 };
      },
      readyLearner: () => this.told.push('ready'),
      failLearner: () => this.told.push('fail'),
      arrange: () => this.told.push('arrange'),
    };
    this.source = new LearnerSource(host as unknown as ReplicaHost, {
      advice: () => ({ sources: [], turn: 0, depth: 0 }),
    });
  }

  /** Lets what was asked and answered come through. */
  async settle(ms = 0): Promise<void> {
    for (let turn = 0; turn < 10; turn++) {
      this.clock.advance(turn === 0 ? ms : 0);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

test('a learner whose place the map refused is proposed again, though its primary had yielded meanwhile', async () => {
  const primary = new Primary();
  primary.source.consider(KEY);
  await primary.settle();
  assert.deepEqual(primary.told, ['start', 'ready']);
  // the change puts another node first: it yields, and news of the map comes before the refusal
  primary.serving = 0 as Ballot;
  primary.source.consider(KEY);
  primary.serving = BALLOT;
  primary.source.refused(KEY, LEARNER);
  await primary.settle(1_000);
  assert.deepEqual(primary.told, ['start', 'ready', 'ready']);
});

test('a learner that is ready while its group is not served is proposed once it is', async () => {
  const primary = new Primary();
  primary.source.consider(KEY);
  await primary.settle();
  // refused, and the lease is away just when it would be asked for again
  primary.serving = 0 as Ballot;
  primary.source.refused(KEY, LEARNER);
  await primary.settle(1_000);
  assert.deepEqual(primary.told, ['start', 'ready']);
  primary.serving = BALLOT;
  primary.source.consider(KEY);
  assert.deepEqual(primary.told, ['start', 'ready', 'ready']);
});

test('a primary whose store fails gives its learner up, and takes it again when the store answers', async () => {
  const primary = new Primary();
  primary.isBroken = true;
  primary.source.consider(KEY);
  await primary.settle();
  assert.deepEqual(primary.told, ['start', 'fail']);
  primary.isBroken = false;
  primary.clock.advance(60_000);
  primary.source.consider(KEY);
  await primary.settle();
  assert.deepEqual(primary.told, ['start', 'fail', 'start', 'ready']);
});

test('while changes are paused, a group that has all its copies begins no move', async () => {
  const primary = new Primary();
  primary.paused = true;
  primary.source.consider(KEY);
  await primary.settle();
  assert.deepEqual(primary.told, []);
  primary.paused = false;
  primary.source.consider(KEY);
  await primary.settle();
  assert.deepEqual(primary.told, ['start', 'ready']);
});

test('a learner that the goal wants no more makes room for the one that it wants now', async () => {
  const primary = new Primary();
  primary.source.consider(KEY);
  await primary.settle();
  assert.deepEqual(primary.told, ['start', 'ready']);
  // another target before the map took the learner
  primary.goal = [asNodeId(6), asNodeId(1)];
  primary.source.refused(KEY, LEARNER);
  primary.source.consider(KEY);
  await primary.settle(1_000);
  assert.deepEqual(primary.told, ['start', 'ready', 'fail', 'start 6', 'ready']);
});

test('a change that is given up ends the learners that it began', async () => {
  const primary = new Primary();
  primary.source.consider(KEY);
  await primary.settle();
  primary.goal = [asNodeId(1), asNodeId(2)];
  primary.source.consider(KEY);
  assert.deepEqual(primary.told, ['start', 'ready', 'fail']);
});

test('a group that lacks nothing is looked at twice a minute, one that lacks a node each second', async () => {
  const primary = new Primary();
  primary.goal = [asNodeId(1), asNodeId(2)];
  primary.source.start();
  for (let second = 0; second < 60; second++) await primary.settle(1_000);
  assert.ok(primary.looks <= 3, `${primary.looks} looks`);
  primary.isBroken = true;
  primary.goal = [LEARNER, asNodeId(1)];
  primary.source.consider(KEY);
  await primary.settle();
  const before = primary.looks;
  for (let second = 0; second < 10; second++) await primary.settle(1_000);
  assert.ok(primary.looks >= before + 10);
  primary.source.stop();
});

test('a group that lacks a node is taken up within a second when its primary serves again, without news of the map', async () => {
  const primary = new Primary();
  primary.isBroken = true;
  primary.source.start();
  await primary.settle();
  primary.serving = 0 as Ballot;
  for (let second = 0; second < 3; second++) await primary.settle(1_000);
  primary.isBroken = false;
  primary.serving = BALLOT;
  primary.told.length = 0;
  await primary.settle(1_000);
  assert.deepEqual(primary.told, ['start', 'ready']);
  primary.source.stop();
});
