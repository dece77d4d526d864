import { SystemRandom } from '@webdfs/base';
import { runHistory } from './run.ts';
import { FLAWS } from './world.ts';

/**
 * Random map histories for as long as one likes, and the seeds by which each rule, left out, is caught:
 *
 * `node --conditions=webdfs:source packages/cluster/src/model/history.fuzz.ts [RUNS] [SEED]`
 */
const EVENTS = 600;
const runs = Number(process.argv[2] ?? 2_000);
const first = Number(process.argv[3] ?? Math.floor(new SystemRandom().fraction() * 2 ** 31));
console.log(`seeds ${first} to ${first + runs - 1}, ${EVENTS} events each`);

let told = 0;
let failures = 0;
for (let seed = first; seed < first + runs; seed++) {
  // every other one with numbers of copies that change
  const result = runHistory(seed, EVENTS, { changesPolicies: seed % 2 === 1 });
  told += result.told;
  if (result.broken === undefined) continue;
  failures++;
  console.log(`seed ${seed}, event ${result.events}: ${result.broken}`);
}
console.log(`sound: ${failures} of ${runs} broken, ${told} entries told`);

for (const flaw of FLAWS) {
  let caught = 0;
  let best: { seed: number; events: number; broken: string } | undefined;
  for (let seed = first; seed < first + runs; seed++) {
    const { broken, events } = runHistory(seed, EVENTS, { flaw });
    if (broken === undefined) continue;
    caught++;
    if (best === undefined || events < best.events) best = { seed, events, broken };
  }
  console.log(`${flaw}: caught in ${caught}; ${best && `seed ${best.seed}, event ${best.events}: ${best.broken}`}`);
}
process.exitCode = failures === 0 ? 0 : 1;
