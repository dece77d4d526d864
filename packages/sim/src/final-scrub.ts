import { type Survey, survey } from '@webdfs/replica';
import type { Invariants } from './invariants.ts';
import type { Life } from './machine.ts';
import { Violation } from './simulated-client.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';

/** How long a pass over a cluster of this scale may take: its volumes are looked at again after failures only. */
const PASS_MS = 180_000;
const LOOK_MS = 1_000;
const BYTES_PER_SECOND = 2 ** 30;

/** What a survey lacks that is not complete. */
function lackOf({ uncounted, unread, nodes }: Survey): string {
  const groups = uncounted.map(({ group, why }) => `group ${group}: ${why}`);
  const silent = nodes.flatMap(({ node, said }) => (typeof said === 'string' ? [`node ${node}: ${said}`] : []));
  return [...groups, ...unread.map((node) => `node ${node} has not read its volumes`), ...silent].join('; ');
}

/**
 * A pass over all copies, as `webdfs scrub --now` begins it, says that it is complete, and finds nothing wrong but at nodes
 * whose bits were turned over behind their backs; and there it is put right.
 *
 * @throws Violation
 */
export async function scrubFinally(cluster: SimulatedCluster, invariants: Invariants, life: Life): Promise<void> {
  const { clock, storage } = life;
  const seams = { clock, map: storage.map, link: (node: Parameters<typeof storage.link>[0]) => storage.link(node) };
  const until = cluster.time.now + PASS_MS;
  const pass = { id: clock.now(), bytesPerSecond: BYTES_PER_SECOND };
  let found = await cluster.during(survey(seams, { pass }));
  while (!found.complete && cluster.time.now < until) {
    await cluster.pass(LOOK_MS);
    found = await cluster.during(survey(seams));
  }
  if (!found.complete) throw new Violation(`the scrub is not complete after ${PASS_MS} ms: ${lackOf(found)}`);
  let mended = 0;
  for (const { tally } of found.policies) {
    for (const problem of tally.problems) {
      const isPlanted = problem.wrong.length > 0 && problem.wrong.every(({ node }) => invariants.hasFlips(node));
      if (!isPlanted) throw new Violation(`the scrub found what nobody planted: ${JSON.stringify(problem)}`);
    }
    if (tally.left > 0)
      throw new Violation(`the scrub left ${tally.left} things as they were: ${JSON.stringify(tally)}`);
    mended += tally.mended;
  }
  cluster.tell(`final: scrubbed, ${mended} copies mended`);
}
