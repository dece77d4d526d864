import assert from 'node:assert/strict';
import test from 'node:test';
import { BrokenInvariant, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { remembered, type Rules } from './rules.ts';
import { SimulatedCluster } from './simulated-cluster.ts';

const RUNS = 16;
const EVENTS = 1_000;

function aCluster(seed: number, rules: Partial<Rules> = {}): SimulatedCluster {
  const faults = [0.3, 1, 1][seed % 3]!;
  return new SimulatedCluster({ seed, nodes: 3 + (seed % 3), clients: 2 + (seed % 3), faults, rules });
}

test('whatever happens, nothing acknowledged is lost, doubled or hidden, and in the end every client is answered', (t) => {
  const random = new SeededRandom(seedOf(t));
  const totals = { acknowledged: 0, reads: 0, crashes: 0, joined: 0, restored: 0 };
  for (let i = 0; i < RUNS; i++) {
    const seed = random.uint32();
    const cluster = aCluster(seed);
    try {
      cluster.run(EVENTS).settle(800);
      assert.equal(cluster.unanswered, 0, 'after the faults every operation is answered');
    } catch (error) {
      throw new Error(`run with seed ${seed} failed after ${cluster.events} events`, { cause: error });
    }
    totals.acknowledged += cluster.checks.acknowledged;
    totals.reads += cluster.checks.reads;
    for (const name of ['crashes', 'joined', 'restored'] as const) totals[name] += cluster.counts[name];
  }
  t.diagnostic(JSON.stringify(totals));
  assert.ok(totals.acknowledged > RUNS, 'clients were answered');
  assert.ok(totals.crashes > RUNS, 'nodes crashed');
  assert.ok(totals.joined > 0, 'learners became members');
});

test('without faults every write of every client is acknowledged, and no node changes', () => {
  const cluster = new SimulatedCluster({ seed: 7, faults: 0 });
  cluster.run(3_000).settle(800);
  assert.equal(cluster.unanswered, 0);
  assert.ok(cluster.checks.acknowledged > 100, `${cluster.checks.acknowledged} acknowledged`);
});

/** Runs with a broken rule until a check notices. The seeds are fixed: this is about the checks, not about luck. */
function noticedAfter(rules: Partial<Rules>, firstSeed: number): string | undefined {
  for (let seed = firstSeed; seed < firstSeed + 20; seed++) {
    try {
      aCluster(seed, rules).run(2_000);
    } catch (error) {
      if (error instanceof BrokenInvariant) return error.message;
      throw error;
    }
  }
  return undefined;
}

const BROKEN: readonly {
  readonly what: string;
  readonly seed: number;
  readonly rules: Partial<Rules>;
  readonly notices: RegExp;
}[] = [
  { what: 'no table of requests', seed: 97, rules: { noRequestTable: true }, notices: /S5/ },
  { what: 'disks that forget what they acknowledged', seed: 97, rules: { lyingDisks: true }, notices: /S3|S9|no disk/ },
  {
    what: 'committing with fewer than minCopies',
    seed: 97,
    rules: { viewOf: remembered((view) => ({ ...view, minCopies: 1 })) },
    notices: /S\d/,
  },
  {
    what: 'acknowledging before all members have it',
    seed: 97,
    rules: {
      viewOf: remembered((view) => (view.inSync.length < 3 ? view : { ...view, inSync: view.inSync.slice(0, -1) })),
    },
    notices: /S3/,
  },
  { what: 'leases that never end', seed: 7_954, rules: { endlessLeases: true }, notices: /S4/ },
  { what: 'new primaries that wait for nobody', seed: 60_140, rules: { noFence: true }, notices: /S4/ },
];

for (const { what, seed, rules, notices } of BROKEN) {
  test(`broken on purpose, the checks notice: ${what}`, () => {
    assert.match(noticedAfter(rules, seed) ?? 'nothing', notices);
  });
}
