import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { checkHistory } from './check-history.ts';
import { checkKey } from './linearizability.ts';
import type { Operation } from './operation.ts';
import { toyHistory, type ToyMutant } from './toy-store.ts';
import { drawOperations } from './transcript.ts';

test('the history of a sound store is linearizable, whatever was lost on the way', (t) => {
  const random = randomOf(t);
  for (let run = 0; run < 200; run++) {
    const operations = toyHistory(random, { operations: 60 });
    const report = checkHistory(operations);
    assert.ok(report.linearizable, report.offence && drawOperations(report.offence.operations).join('\n'));
    assert.equal(report.operations, operations.length);
  }
});

/** Each way of being broken shows within so many histories of 60 operations, from seed 1 on. */
const CAUGHT_WITHIN: Readonly<Record<ToyMutant, number>> = {
  'drops-acknowledged-write': 5,
  'serves-stale-read': 5,
  'loses-compare-and-swap': 30,
  'forgets-on-crash': 10,
};

for (const [mutant, within] of Object.entries(CAUGHT_WITHIN) as [ToyMutant, number][]) {
  test(`a store that ${mutant.replaceAll('-', ' ')} is caught within ${within} histories`, (t) => {
    let caught = 0;
    for (let seed = 1; seed <= within && caught === 0; seed++) {
      const { offence } = checkHistory(toyHistory(new SeededRandom(seed), { operations: 60, mutant }));
      if (offence === undefined) continue;
      caught = seed;
      t.diagnostic(`seed ${seed}, shown by ${offence.operations.length} operations`);
      for (const line of drawOperations(offence.operations)) t.diagnostic(line);
    }
    assert.ok(caught > 0);
  });
}

test('the shortest offending history is itself offending, and mostly short however long the whole was', (t) => {
  const random = randomOf(t);
  let shown = 0;
  const lengths: number[] = [];
  for (let run = 0; run < 10; run++) {
    const { offence } = checkHistory(toyHistory(random, { operations: 400, mutant: 'serves-stale-read' }));
    if (offence === undefined) continue;
    shown += 1;
    assert.equal(checkKey(offence.operations).type, 'not-linearizable', drawOperations(offence.operations).join('\n'));
    lengths.push(offence.operations.length);
  }
  lengths.sort((a, b) => a - b);
  assert.ok(shown > 5, `${shown} offences`);
  assert.ok(lengths[lengths.length >>> 1]! <= 6, lengths.join(' '));
});

test('one bad key among good ones is the one that is named', (t) => {
  const random = randomOf(t);
  const good = toyHistory(random, { operations: 60 });
  const write = { client: 9, key: 'bad', askedAt: 0, answeredAt: 1 };
  const bad: Operation[] = [
    { ...write, action: { type: 'write', value: 'x' }, result: { type: 'done' } },
    { ...write, askedAt: 2, answeredAt: 3, action: { type: 'read' }, result: { type: 'read', value: undefined } },
  ];
  const report = checkHistory([...good, ...bad]);
  assert.equal(report.offence?.key, 'bad');
  assert.deepEqual(report.offence.operations, bad);
  assert.deepEqual(drawOperations(bad), [
    '├───────────────┤                                  client 9  [0, 1]  write x: done',
    '                               ├───────────────┤   client 9  [2, 3]  read: nothing there',
  ]);
});
