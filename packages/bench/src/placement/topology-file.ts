import { readFile, stat } from 'node:fs/promises';
import { WebdfsError } from '@webdfs/base';
import { asTopology } from '@webdfs/placement';
import type { Task } from './contestant.ts';

/** Larger files are no topology of 65 535 nodes. */
const MAX_BYTES = 64 * 1024 * 1024;
/** What a file is judged by, whatever it names: the default, without anything stored. */
const JUDGED = { algorithm: 'wrd', version: 1, factors: undefined, pins: undefined, table: undefined };

export interface TopologyFile {
  readonly seed: number;
  readonly cluster: Omit<Task, 'groupCount' | 'seed'>;
}

/**
 * A topology as the map has it, in JSON: `subclusters` with nodes of `id`, `weight` (16.16 fixed point: 65 536 is 1) and `labels`;
 * `copies`, `domain` and `seed` if they are not to be the usual ones. Algorithm, factors, pins and tables are of no account
 * here: the experiments have their own.
 *
 * @throws WebdfsError INVALID that names file and entry
 */
export async function readTopologyFile(path: string): Promise<TopologyFile> {
  try {
    const { size } = await stat(path);
    if (size > MAX_BYTES) throw new RangeError(`${size} bytes are more than ${MAX_BYTES}`);
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    const given: object = typeof value === 'object' && value !== null ? value : {};
    const topology = asTopology({ seed: 1, copies: 3, ...given, ...JUDGED });
    const { seed, copies, domain, subclusters } = topology;
    return { seed, cluster: { copies, subclusters, ...(domain === undefined ? {} : { domain }) } };
  } catch (error) {
    throw new WebdfsError('INVALID', `${path} is no topology`, { cause: error });
  }
}
