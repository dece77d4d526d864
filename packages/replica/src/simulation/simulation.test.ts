import assert from 'node:assert/strict';
import test from 'node:test';
import { BrokenInvariant, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { remembered, type Rules } from './rules.ts';
import { SimulatedCluster } from './simulated-cluster.ts';

const RUNS = 12;
const EVENTS = 1_000;

function aCluster(seed: number, rules: Partial<Rules> = {}, cutOffs = false): SimulatedCluster {
  const faults = [0.3, 1, 1][seed % 3]!;
  return new SimulatedCluster({ seed, nodes: 3 + (seed % 3), clients: 2 + (seed % 3), faults, rules, cutOffs });
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

test('without faults every client is answered, and no member changes', () => {
  const cluster = new SimulatedCluster({ seed: 7, faults: 0, clients: 6 });
  cluster.run(2_000).settle(300);
  assert.equal(cluster.unanswered, 0);
  assert.ok(cluster.checks.acknowledged > 30, `${cluster.checks.acknowledged} acknowledged`);
  assert.equal(cluster.counts.dropped + cluster.counts.joined + cluster.counts.accused, 0);
});

test('primaries that are cut off and accused answer nothing stale', (t) => {
  const random = new SeededRandom(seedOf(t));
  for (let i = 0; i < 8; i++) aCluster(random.uint32(), {}, true).run(EVENTS);
});

/** Runs with a broken rule until a check notices. The seeds are fixed: this is about the checks, not about luck. */
function noticed(rules: Partial<Rules>, cutOffs: boolean): string {
  for (let seed = 1; seed <= 40; seed++) {
    try {
      aCluster(seed, rules, cutOffs).run(2_000);
    } catch (error) {
      if (error instanceof BrokenInvariant) return error.message;
      throw error;
    }
  }
  return 'nothing';
}

interface Broken {
  readonly what: string;
  readonly rules: Partial<Rules>;
  readonly cutOffs?: boolean;
  readonly notices: RegExp;
}

const BROKEN: readonly Broken[] = [
  { what: 'no table of requests', rules: { noRequestTable: true }, notices: /S5/ },
  { what: 'disks that forget what they acknowledged', rules: { lyingDisks: true }, notices: /S3|S9|no disk|S6/ },
  {
    what: 'committing with fewer than minCopies',
    rules: { viewOf: remembered((view) => ({ ...view, minCopies: 1 })) },
    notices: /S\d/,
  },
  {
    what: 'acknowledging before all members have it',
    rules: {
      viewOf: remembered((view) => (view.inSync.length < 3 ? view : { ...view, inSync: view.inSync.slice(0, -1) })),
    },
    notices: /S3/,
  },
  { what: 'leases that never end', rules: { endlessLeases: true }, cutOffs: true, notices: /S4/ },
  { what: 'new primaries that wait for nobody', rules: { noFence: true }, cutOffs: true, notices: /S4/ },
];

for (const { what, rules, cutOffs = false, notices } of BROKEN) {
  test(`broken on purpose, the checks notice: ${what}`, () => {
    assert.match(noticed(rules, cutOffs), notices);
  });
}
