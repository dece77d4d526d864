import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { PlacementAlgorithm } from './algorithm.ts';
import { testPlacement } from './conformance.ts';
import { placeableNodes } from './domains.ts';
import type { NodeId } from './ids.ts';
import { RENDEZVOUS } from './rendezvous.ts';
import { mapNodes } from './samples.ts';
import type { Topology } from './topology.ts';

/** The lists of rendezvous, changed. */
function altered(change: (list: NodeId[]) => NodeId[]): Partial<PlacementAlgorithm> {
  return {
    prepare(topology) {
      const place = RENDEZVOUS.prepare(topology);
      return (group, count) => change(place(group, count));
    },
  };
}

/** Rendezvous with one promise broken each; the tests run this file in a process of its own to see the suite find it. */
const MUTANTS: Readonly<Record<string, Partial<PlacementAlgorithm>>> = {
  sound: {},
  repeats: altered((list) => list.map((node, i) => list[i % 2] ?? node)),
  short: altered((list) => list.slice(0, 4)),
  turns: altered((list) => (list.length % 2 === 0 ? list.toReversed() : list)),
  'by position': {
    prepare: (topology) => {
      const ids = topology.subclusters.flatMap(({ nodes }) => nodes.map(({ id }) => id)).sort((a, b) => a - b);
      const place = RENDEZVOUS.prepare(
        mapNodes(topology, (node) => ({ ...node, id: (ids.indexOf(node.id) + 1) as never })),
      );
      return (group, count) => place(group, count).map((position) => ids[position - 1]!);
    },
  },
  'by listing': {
    prepare: (topology) => RENDEZVOUS.prepare({ ...topology, seed: placeableNodes(topology)[0]!.id }),
  },
  weightless: {
    prepare: (topology) =>
      RENDEZVOUS.prepare(mapNodes(topology, (node) => ({ ...node, weight: Math.min(1, node.weight) }))),
  },
  restless: {
    prepare: (topology) => RENDEZVOUS.prepare({ ...topology, seed: (topology.seed ^ totalWeight(topology)) >>> 0 }),
  },
  crowded: { supports: { ...RENDEZVOUS.supports, domains: true } },
};

function totalWeight(topology: Topology): number {
  return placeableNodes(topology).reduce((sum, node) => sum + node.weight, 0);
}

/** The names of the promises that the suite finds broken in a mutant. */
async function broken(mutant: string): Promise<string[]> {
  const { NODE_TEST_CONTEXT: _, ...rest } = process.env;
  const env = { ...rest, WEBDFS_MUTANT: mutant, WEBDFS_SEED: '11' };
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, ['--test-reporter=tap', fileURLToPath(import.meta.url)], { env }, (_, stdout) =>
      resolve(stdout),
    );
  });
  assert.match(output, /^# tests \d\d?$/m, output);
  return Array.from(output.matchAll(/^not ok \d+ - mutant: (.*)$/gm), ([, promise]) => promise!);
}

const chosen = process.env['WEBDFS_MUTANT'];
if (chosen === undefined) testSuite();
else testPlacement('mutant', { ...RENDEZVOUS, ...MUTANTS[chosen] }, { topologies: 6, groupBits: 5 });

function testSuite(): void {
  test('the suite finds nothing in a sound algorithm', async () => {
    assert.deepEqual(await broken('sound'), []);
  });

  for (const [mutant, promise] of [
    ['repeats', /all different/],
    ['short', /as many nodes as asked for/],
    ['turns', /keeps the order/],
    ['by position', /dropping a drained node/],
    ['by listing', /however it travelled/],
    ['weightless', /proportional to weight/],
    ['restless', /only loses them/],
    ['crowded', /a domain holds a second copy/],
  ] as const) {
    test(`the suite finds what is broken in an algorithm: ${mutant}`, async () => {
      assert.match((await broken(mutant)).join('\n'), promise);
    });
  }
}
