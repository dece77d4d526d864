import { SeededRandom } from '@webdfs/base';
import { SimulatedCluster } from './simulated-cluster.ts';

/*
 * Long random runs: `node --conditions=webdfs:source packages/replica/src/simulation/simulation.fuzz.ts [runs] [events]`;
 * WEBDFS_SEED chooses the first seed.
 */
const runs = Number(process.argv[2] ?? 300);
const events = Number(process.argv[3] ?? 3_000);
const given = process.env['WEBDFS_SEED'];
const first = given === undefined ? new SeededRandom(process.pid * 7_919).uint32() : Number(given);
process.stdout.write(`replay: WEBDFS_SEED=${first}\n`);

const sums = { events: 0, acknowledged: 0, reads: 0, entries: 0, unanswered: 0 };
const counts: Record<string, number> = {};
for (let i = 0; i < runs; i++) {
  const seed = (first + i) >>> 0;
  const cluster = new SimulatedCluster({ seed, nodes: 3 + (seed % 3), clients: 1 + (seed % 4), cutOffs: i % 3 === 2 });
  try {
    cluster.run(events);
    cluster.settle(800);
    if (cluster.unanswered > 0) throw new Error(`${cluster.unanswered} operations are not answered`);
  } catch (error) {
    process.stdout.write(`WEBDFS_SEED=${seed}, after ${cluster.events} events\n`);
    throw error;
  }
  sums.events += cluster.events;
  sums.acknowledged += cluster.checks.acknowledged;
  sums.reads += cluster.checks.reads;
  sums.entries += cluster.checks.told.length;
  for (const [name, count] of Object.entries(cluster.counts)) counts[name] = (counts[name] ?? 0) + count;
}
process.stdout.write(`${JSON.stringify({ runs, ...sums, ...counts })}\n`);
