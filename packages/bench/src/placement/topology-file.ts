import { readFile } from 'node:fs/promises';
import { messageOf, WebdfsError } from '@webdfs/base';
import { type Topology, validateTopology } from '@webdfs/placement';
import type { Task } from './contestant.ts';

/** Larger files are no topology of 65 535 nodes. */
const MAX_BYTES = 64 * 1024 * 1024;

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuse(path: string, what: string): never {
  throw new WebdfsError('INVALID', `${path}: ${what}`);
}

/** The shape that `validateTopology` takes for granted. */
function checkShape(path: string, value: unknown): asserts value is { subclusters: Topology['subclusters'] } {
  if (!isObject(value) || !Array.isArray(value['subclusters']) || value['subclusters'].length === 0)
    refuse(path, 'a topology has a list "subclusters" that is not empty');
  for (const [i, subcluster] of value['subclusters'].entries()) {
    if (!isObject(subcluster) || !Array.isArray(subcluster['nodes']))
      refuse(path, `subclusters[${i}] is not an object with a list "nodes"`);
    if (subcluster['nodes'].length === 0) refuse(path, `subclusters[${i}] has no nodes`);
    for (const [k, node] of subcluster['nodes'].entries()) {
      if (!isObject(node) || !isObject(node['labels'] ?? {}))
        refuse(path, `subclusters[${i}].nodes[${k}] is not an object with "id", "weight" and "labels"`);
    }
  }
}

/**
 * A topology as the map has it, in JSON: `subclusters` with nodes of `id`, `weight` (16.16 fixed point: 65 536 is 1) and `labels`;
 * `copies`, `domain` and `seed` if they are not to be the usual ones. Algorithm, factors, pins and tables are of no account
 * here: the experiments have their own.
 *
 * @throws WebdfsError INVALID that names file and entry
 */
export async function readTopologyFile(path: string): Promise<Omit<Task, 'groupCount'>> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new WebdfsError('INVALID', `${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  if (text.length > MAX_BYTES) refuse(path, `longer than ${MAX_BYTES} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new WebdfsError('INVALID', `${path} is not JSON: ${messageOf(error)}`, { cause: error });
  }
  checkShape(path, value);
  const given: Partial<Topology> = value;
  const topology: Topology = {
    algorithm: 'wrd',
    version: 1,
    seed: given.seed ?? 1,
    copies: given.copies ?? 3,
    ...(given.domain === undefined ? {} : { domain: given.domain }),
    subclusters: value.subclusters.map(({ id, nodes }) => ({
      id,
      nodes: nodes.map((node) => ({ id: node.id, weight: node.weight, labels: node.labels ?? {} })),
    })),
  };
  const [problem] = validateTopology(topology).errors;
  if (problem !== undefined) refuse(path, problem);
  const { seed, copies, domain, subclusters } = topology;
  return { seed, copies, subclusters, ...(domain === undefined ? {} : { domain }) };
}
