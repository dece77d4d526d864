import { parseArgs } from 'node:util';
import { SystemRandom } from '@webdfs/base';
import { CrashPoints } from './simulation/crash-points.ts';
import { History } from './simulation/history.ts';

/**
 * Random histories of a store on a simulated disk, by the thousand: `npm exec -c 'node --conditions=webdfs:source
 * packages/store/src/crash.fuzz.ts --histories 2000 [--seed n] [--only]'`. History i has seed + i; `--only` runs just one.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    histories: { type: 'string', default: '1000' },
    only: { type: 'boolean', default: false },
    rot: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  },
});
const seed = values.seed === undefined ? Math.floor(new SystemRandom().fraction() * 2 ** 31) : Number(values.seed);
const histories = values.only ? 1 : Number(values.histories);
console.log(`seed ${seed}, ${histories} histories`);
const points = new CrashPoints();
let failures = 0;
for (let i = 0; i < histories; i++) {
  try {
    await new History({
      seed: seed + i,
      points,
      rot: values.rot,
      ...(values.trace ? { trace: console.log } : {}),
    }).run();
  } catch (error) {
    failures += 1;
    console.error(`history ${seed + i} failed:`, error);
    if (failures >= 5) break;
  }
  points.totals.histories += 1;
}
console.log(points.totals);
for (const [point, count] of [...points.counts].sort()) console.log(String(count).padStart(7), point);
for (const point of points.missing()) console.log('      –', point);
// So many histories come by everywhere; if they do not, they have become shorter than they were.
const mustReachAll = histories >= 500 && !values.rot;
process.exitCode = failures > 0 || (mustReachAll && points.missing().length > 0) ? 1 : 0;
