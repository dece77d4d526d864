import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Check } from '../../report/check.ts';
import { balanceClaims } from './balance-claims.ts';
import { SHORT_CLAIMS } from './claim.ts';
import { listClaims } from './list-claims.ts';
import { lookupClaims } from './lookup-claims.ts';
import { movementClaims, rackClaims } from './movement-claims.ts';

function assertAll(checks: readonly Check[], numbers: readonly string[]): void {
  const failed = checks.filter((check) => !check.pass);
  assert.deepEqual(failed, []);
  for (const number of numbers) {
    assert.ok(
      checks.some((check) => check.name.startsWith(`${number} `)),
      `${number} was tried`,
    );
  }
}

test('P1, P16, P19: loads are in proportion to weight as far as chance allows; pins take the rest', () => {
  assertAll(balanceClaims(SHORT_CLAIMS), ['P1', 'P16', 'P19', 'pins:', '15']);
});

test('P2 to P12: the RUSH family and rendezvous move what is known of them', () => {
  const numbers = ['P2', 'P3', 'P4', 'P5', 'P6', 'P7', 'P8', 'P9', 'P10', 'P11', 'P12'];
  assertAll(movementClaims(SHORT_CLAIMS), numbers);
});

test('P13: WRD keeps racks apart, is not biased, and moves at most 1.08 of the optimum', () => {
  assertAll(rackClaims(SHORT_CLAIMS), ['P13']);
});

test('P14, P15, P17: lists have the shape that each placement promises', () => {
  assertAll(listClaims(), ['P14', 'P15', 'P17']);
});

test('P18: a walk that does not grow with the cluster is found out', () => {
  const flat = ['even', 'growing'].flatMap((weights) =>
    [10, 100].flatMap((subclusters) =>
      ['rush-r-shuffle', 'compiled table'].map((name) => ({ name, weights, subclusters, ns: 500 })),
    ),
  );
  const checks = lookupClaims(flat);
  assert.deepEqual(
    checks.map((check) => check.pass),
    [false, true, false, true],
  );
  assert.deepEqual(lookupClaims([]), [], 'nothing measured, nothing claimed');
});
