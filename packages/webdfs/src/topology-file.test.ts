import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { codeOf } from '@webdfs/base';
import { UNIT_WEIGHT } from '@webdfs/placement';
import { parseBytes, parseIds, parseTopologyFile } from './topology-file.ts';

test('a few lines describe a cluster: what a sub-cluster says holds for its nodes unless they say otherwise', () => {
  const file = parseTopologyFile(
    'a.yaml',
    `# three racks
copies: 2
domain: rack
groups: 4096
stored: 1.5 TB
subclusters:
  - { rack: r1, weight: 4, nodes: 1-3, capacity: 2 TiB }
  - rack: r2
    nodes:
      - 7-8
      - 10
      - { id: 11, weight: 0.5, rack: r3, capacity: 5 }
  - { id: 9, count: 2 }
`,
  );
  assert.equal(file.groupBits, 12);
  assert.equal(file.storedBytes, 1.5e12);
  assert.equal(file.topology.copies, 2);
  assert.deepEqual(
    file.topology.subclusters.map(({ id, nodes }) => [
      id,
      nodes.map((node) => [node.id, node.weight / UNIT_WEIGHT, node.labels.rack]),
    ]),
    [
      [
        1,
        [
          [1, 4, 'r1'],
          [2, 4, 'r1'],
          [3, 4, 'r1'],
        ],
      ],
      [
        2,
        [
          [7, 1, 'r2'],
          [8, 1, 'r2'],
          [10, 1, 'r2'],
          [11, 0.5, 'r3'],
        ],
      ],
      [
        9,
        [
          [12, 1, undefined],
          [13, 1, undefined],
        ],
      ],
    ],
  );
  assert.deepEqual(
    [...file.capacities],
    [
      [1, 2 * 1024 ** 4],
      [2, 2 * 1024 ** 4],
      [3, 2 * 1024 ** 4],
      [11, 5],
    ],
  );
  // as it would be published
  assert.ok(Object.keys(file.topology.factors ?? {}).includes('r1'));
});

test('JSON is read too, and what is left out has a default', () => {
  const { topology, groupBits, storedBytes } = parseTopologyFile('a.json', '{"subclusters": [{"nodes": "1-5"}]}');
  assert.equal(groupBits, 14);
  assert.equal(storedBytes, undefined);
  assert.equal(topology.algorithm, 'wrd');
  assert.equal(topology.copies, 3);
  assert.equal(topology.domain, undefined);
});

test('a topology as the map keeps it is read as it is', () => {
  const { topology } = parseTopologyFile('a.yaml', 'subclusters: [{nodes: 1-5, weight: 2}]');
  assert.deepEqual(parseTopologyFile('map.json', JSON.stringify(topology)).topology, topology);
  assert.throws(() => parseTopologyFile('map.json', JSON.stringify({ ...topology, seed: -1 })), {
    code: 'INVALID',
    message: /^map\.json: .*seed/,
  });
});

test('what is wrong is named with its entry and its line', () => {
  const wrong: [string, RegExp][] = [
    [
      'copies: 3\nsubclusters:\n  - nodes: 1-5\n    wieght: 2\n',
      /line 4: subclusters\[0\]\.wieght is not known here: known are id, nodes/,
    ],
    [
      'subclusters:\n  - nodes: 1-5\n  - nodes:\n      - 6\n      - 3\n',
      /line 5: subclusters\[1\]\.nodes\[1\] lists node 3 a second time/,
    ],
    [
      'subclusters:\n  - nodes: 1-5\n    weight: -1\n',
      /line 3: subclusters\[0\]\.weight is -1, not a number from 0 to 65535/,
    ],
    ['subclusters:\n  - nodes: 1-5\n    weight: .nan\n', /line 3: subclusters\[0\]\.weight is null, not a number/],
    [
      'subclusters:\n  - nodes:\n    - {id: 1, weight: much}\n',
      /line 3: subclusters\[0\]\.nodes\[0\]\.weight is "much"/,
    ],
    [
      'subclusters:\n  - {id: 2, nodes: 1-2}\n  - {id: 2, nodes: 3-4}\n',
      /line 3: subclusters\[1\] is a second sub-cluster 2/,
    ],
    ['subclusters:\n  - nodes: 5-1\n', /line 2: subclusters\[0\]\.nodes is "5-1", not ids like/],
    ['subclusters:\n  - {nodes: 1-2, count: 3}\n', /line 2: subclusters\[0\]\.count and nodes exclude each other/],
    ['subclusters:\n  - {weight: 2}\n', /line 2: subclusters\[0\]\.nodes is not a list/],
    ['subclusters: [{nodes: 1-5}]\ndomain: row\n', /line 2: domain is "row", not one of zone, rack, machine/],
    ['subclusters: [{nodes: 1-5}]\nalgorithm: best\n', /line 2: algorithm is "best", not one of wrd, /],
    ['subclusters: [{nodes: 1-5}]\ngroups: 1000\n', /line 2: groups is 1000, not a power of two/],
    ['subclusters: [{nodes: 1-5}]\nstored: 3 pounds\n', /line 2: stored is "3 pounds", not a size like 12 TB/],
    ['subclusters: [{nodes: 1-5}]\npins: [{group: 1, from: 2}]\n', /line 2: pins\[0\]\.to is undefined/],
    ['subclusters: [{nodes: 1-5}]\nfactors:\n  r1: 0\n', /line 3: factors\.r1 is 0/],
    ['- 1\n- 2\n', /line 1: the whole is not a list of names and values/],
    ['copies: 3\n', /line 1: subclusters is not a list/],
    ['a: [1\nb: 2\n', /^f, line \d: /],
    ['subclusters: [{nodes: 1-2}]\n', /^f: .*3 copies need as many nodes with weight, there are 2/],
    [
      'algorithm: rush-p\nsubclusters: [{nodes: 1-2}, {nodes: 3-9}]\n',
      /^f: .*rush-p needs at least 3 nodes .* in the oldest sub-cluster/,
    ],
    [
      `a: &a [1,1,1,1,1,1,1,1,1]\n${Array.from(
        { length: 9 },
        (_, i) =>
          `b${i}: &b${i} [${Array(9)
            .fill(i === 0 ? '*a' : `*b${i - 1}`)
            .join(',')}]`,
      ).join('\n')}\n`,
      /line 1: .*alias/,
    ],
  ];
  for (const [text, message] of wrong) {
    assert.throws(() => parseTopologyFile('f', text), { code: 'INVALID', message }, text);
  }
  assert.throws(() => parseTopologyFile('f', ' '.repeat(17 * 1024 * 1024)), { code: 'TOO_LARGE' });
});

test('whatever the text, it is read or refused, never mistaken', (t) => {
  const words = fc.constantFrom(
    'subclusters:',
    'nodes:',
    '- ',
    '1-3',
    'id: 1',
    '{',
    '}',
    '[',
    ']',
    '\n',
    '  ',
    ': ',
    '&a',
    '*a',
    'weight: 2',
    '"',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(words).map((parts) => parts.join('')),
      ),
      (text) => {
        try {
          parseTopologyFile('f', text);
        } catch (error) {
          assert.equal(codeOf(error), 'INVALID', String(error));
        }
      },
    ),
    { numRuns: 500, seed: seedOf(t) },
  );
});

test('sizes and ids are read as people write them', () => {
  assert.deepEqual(['12', '12 B', '1.5 kB', '2KiB', '3 PiB', '0 TB'].map(parseBytes), [
    12,
    12,
    1500,
    2048,
    3 * 1024 ** 5,
    0,
  ]);
  assert.deepEqual(['', '1 XB', '-1', '1,5 TB', '1e3', 'TB'].map(parseBytes), Array(6).fill(undefined));
  assert.deepEqual(parseIds('1-3, 7 ,9-9'), [1, 2, 3, 7, 9]);
  assert.deepEqual(['', '1-', '3-1', '1-99999', 'a', '1;2'].map(parseIds), Array(6).fill(undefined));
});

test('the example of the guide is read', () => {
  const page = readFileSync(new URL('../../../docs/guide/planning.md', import.meta.url), 'utf8');
  const [, example] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
  assert.ok(example !== undefined);
  assert.equal(parseTopologyFile('planning.md', example).topology.domain, 'rack');
});
