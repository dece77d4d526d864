import type { TestContext } from 'node:test';
import { SeededRandom, SystemRandom } from './random.ts';

export { type LocalServer, serveLocally } from './local-server.ts';
export { type Crash, SimulatedDisk, type SimulatedDiskOptions } from './simulated-disk.ts';
export { type DiskAction, type DiskFate, type DiskOperation, MachineStopped } from './simulated-file.ts';

/**
 * The seed of a randomised test: `WEBDFS_SEED` if set, else a fresh one; printed so that the run can be repeated.
 */
export function seedOf(context: TestContext): number {
  const given = process.env['WEBDFS_SEED'];
  const seed = given === undefined ? Math.floor(new SystemRandom().fraction() * 4_294_967_296) : Number(given);
  context.diagnostic(`replay: WEBDFS_SEED=${seed} npm test`);
  return seed;
}

/** Seeded chance for a test, the seed printed. */
export function randomOf(context: TestContext): SeededRandom {
  return new SeededRandom(seedOf(context));
}
