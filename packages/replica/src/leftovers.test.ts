import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { isLeftover } from './leftovers.ts';

const nodes = (...ids: number[]): ReturnType<typeof asNodeId>[] => ids.map(asNodeId);
const WHOLE = { health: 'whole', inSync: nodes(1, 2, 3), eligible: [], goal: nodes(1, 2, 3) } as const;

test('a copy is a leftover only where nobody counts on it and the others are whole', () => {
  assert.equal(isLeftover(WHOLE, 4), true);
  assert.equal(isLeftover(WHOLE, 3), false);
  assert.equal(isLeftover({ ...WHOLE, eligible: nodes(4) }, 4), false);
  assert.equal(isLeftover({ ...WHOLE, goal: nodes(1, 2, 4) }, 4), false);
  assert.equal(isLeftover({ ...WHOLE, health: 'degraded' }, 4), false);
});
