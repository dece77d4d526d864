import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UNIT_WEIGHT } from '@webdfs/placement';
import { CHANGE_HELP, parseChange } from './change-words.ts';

test('every change is read from its words', () => {
  const read: [string, unknown][] = [
    ['add=8', { type: 'add-subcluster', count: 8, weight: UNIT_WEIGHT, labels: {} }],
    [
      'add=8,weight=1.5,rack=r 13,zone=z,id=7',
      { type: 'add-subcluster', count: 8, weight: 1.5 * UNIT_WEIGHT, labels: { rack: 'r 13', zone: 'z' }, id: 7 },
    ],
    ['add=2,to=3', { type: 'add-nodes', subcluster: 3, count: 2, labels: {} }],
    ['drain=7', { type: 'drain', nodes: { by: 'id', ids: [7] } }],
    ['drain=1-3,9', { type: 'drain', nodes: { by: 'id', ids: [1, 2, 3, 9] } }],
    ['remove=subcluster:2', { type: 'remove', nodes: { by: 'subcluster', id: 2 } }],
    [
      'weight=rack:a:b,to=4',
      { type: 'reweight', nodes: { by: 'label', label: 'rack', value: 'a:b' }, weight: 4 * UNIT_WEIGHT },
    ],
    ['weight=1,2,times=0.5', { type: 'rescale', nodes: { by: 'id', ids: [1, 2] }, times: 0.5 }],
    ['label=4-5,machine=m', { type: 'relabel', nodes: { by: 'id', ids: [4, 5] }, labels: { machine: 'm' } }],
    ['domain=none', { type: 'domain', domain: undefined }],
    ['domain=zone', { type: 'domain', domain: 'zone' }],
    ['algorithm=rush-r', { type: 'algorithm', algorithm: 'rush-r' }],
    ['copies=4', { type: 'copies', copies: 4 }],
  ];
  for (const [words, change] of read) assert.deepEqual(parseChange(words), change, words);
});

test('words that are no change are named, with what could be meant', () => {
  const wrong: [string, RegExp][] = [
    ['drain', /drain is no change: say add=…, drain=…/],
    ['constructor=1', /is no change/],
    ['drain=', /drain=: "" names no nodes/],
    ['drain=rack:', /names no nodes/],
    ['drain=1,weight=2', /there is no option weight/],
    ['add=8,wieght=4', /there is no option wieght: weight, to, id/],
    ['add=8,weight=4,weight=5', /weight is given twice/],
    ['add=8,weight=,rack=r', /weight is "", not a number/],
    ['add=x', /the number of nodes is "x"/],
    ['add=1.5', /the number of nodes is 1\.5, not a whole number/],
    ['add=1,rack=r,2', /"2" is no option/],
    ['add=1,to=1,id=2', /id is for a new sub-cluster/],
    ['add=1,rack=', /rack has no name/],
    ['weight=1', /say either to=WEIGHT or times=FACTOR/],
    ['weight=1,to=2,times=2', /say either/],
    ['label=1', /say which/],
    ['domain=row', /say zone, rack, machine or none/],
    ['copies=many', /the number of copies is "many"/],
  ];
  for (const [words, message] of wrong) assert.throws(() => parseChange(words), { code: 'INVALID', message }, words);
});

test('the help tells of every change', () => {
  for (const verb of ['add', 'drain', 'remove', 'weight', 'label', 'domain', 'algorithm', 'copies']) {
    assert.match(CHANGE_HELP, new RegExp(`\\b${verb}=`));
  }
});
