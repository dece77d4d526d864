import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import type { LocalMap } from '@webdfs/cluster';
import { REPLICA_DEFAULTS } from './parameters.ts';
import { Patience } from './patience.ts';

const NODE = asNodeId(2);
const { memberMs, busyMemberMs } = REPLICA_DEFAULTS;

function patience(live: boolean): Patience {
  const view = { live: () => (live ? { session: 7 } : undefined) };
  return new Patience({ view } as unknown as LocalMap, REPLICA_DEFAULTS);
}

test('a node that answers other groups has longer than one that is silent as a whole', () => {
  const subject = patience(true);
  assert.equal(subject.ms(NODE, 0), memberMs);
  subject.heard(NODE, 1_000);
  assert.equal(subject.ms(NODE, 1_000 + memberMs - 1), busyMemberMs);
  assert.equal(subject.ms(NODE, 1_000 + memberMs), memberMs);
});

test('a node without a session is left to the controller first', () => {
  assert.equal(patience(false).ms(NODE, 0), busyMemberMs);
});
