import { asPolicyId, type NodeId, type Random, type Revision, toHex, WebdfsError } from '@webdfs/base';
import { type AlgorithmName, publishTopology, type Topology, validateTopology } from '@webdfs/placement';
import { formatDocument } from './documents.ts';
import { diskKey, FOUNDING_KEY, JOIN_PREFIX, MAP_KEY, nodeKey, sliceCount, sliceKey } from './keys.ts';
import type { ClusterMap, Policy } from './map.ts';
import type { Compare, MapStore, Write } from './map-store.ts';
import { withOurErrors } from './placement-errors.ts';
import { usualMinCopies } from './policy-change.ts';

export interface NewNode {
  readonly id: NodeId;
  readonly address: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** 1 if missing; kept in 16.16 fixed point. */
  readonly weight?: number;
  /** The id of its data folder, if it is known; else the first folder that claims the place has it. */
  readonly disk?: string;
}

export interface NewCluster {
  readonly name: string;
  readonly nodes: readonly NewNode[];
  readonly random: Random;
  /** 3, or as many as there are nodes. */
  readonly copies?: number;
  /** `copies` − ⌊`copies` / 2⌋. */
  readonly minCopies?: number;
  readonly algorithm?: AlgorithmName;
  /** 12: 4 096 groups. */
  readonly groupBits?: number;
  /** Name of the secret that its nodes know. */
  readonly secret?: string;
  /** The label whose values keep copies apart. */
  readonly domain?: 'zone' | 'rack' | 'machine';
}

/** The policy that a cluster is made with. */
export const FIRST_POLICY = asPolicyId(1);

const MAX_NODES = 1_024;
const BATCH = 120;
const UNIT_WEIGHT = 65_536;
const FREE: Compare = { type: 'modified', key: MAP_KEY, is: 0 };

function topologyOf(options: NewCluster, copies: number, groupBits: number): Topology {
  const seed = options.random.bytes(4);
  const plain: Topology = {
    algorithm: options.algorithm ?? 'wrd',
    version: 1,
    seed: new DataView(seed.buffer, seed.byteOffset).getUint32(0, true),
    copies,
    ...(options.domain === undefined ? {} : { domain: options.domain }),
    subclusters: [
      {
        id: 1,
        nodes: options.nodes.map(({ id, labels = {}, weight = 1 }) => ({
          id,
          weight: Math.round(weight * UNIT_WEIGHT),
          labels: Object.fromEntries(Object.entries(labels).filter(([name]) => /^(zone|rack|machine)$/.test(name))),
        })),
      },
    ],
  };
  const topology = withOurErrors(() => publishTopology(plain, { groupBits }));
  const { errors } = validateTopology(topology);
  if (errors.length > 0) throw new WebdfsError('BAD_CONFIG', `the cluster's topology: ${errors.join('; ')}`);
  return topology;
}

/** @throws BAD_CONFIG */
function firstPolicy(options: NewCluster): Policy {
  const copies = options.copies ?? Math.min(3, options.nodes.length);
  const minCopies = options.minCopies ?? usualMinCopies(copies);
  if (!Number.isInteger(minCopies) || minCopies < 1 || minCopies > copies) {
    throw new WebdfsError('BAD_CONFIG', `minCopies is ${minCopies}, allowed are 1 to ${copies}`);
  }
  return { id: FIRST_POLICY, name: `replicas=${copies}`, copies, minCopies, minCopiesSince: 0 };
}

/** @throws BAD_CONFIG */
function newMap(options: NewCluster): ClusterMap {
  const { nodes, groupBits = 12 } = options;
  if (nodes.length === 0 || nodes.length > MAX_NODES) {
    throw new WebdfsError('BAD_CONFIG', `a cluster is made with 1 to ${MAX_NODES} nodes, not ${nodes.length}`);
  }
  if (!Number.isInteger(groupBits) || groupBits < 0 || groupBits > 16) {
    throw new WebdfsError('BAD_CONFIG', `groupBits is ${groupBits}, allowed are 0 to 16`);
  }
  const policy = firstPolicy(options);
  return {
    cluster: toHex(options.random.bytes(16)),
    name: options.name,
    era: 0,
    groupBits,
    policies: [policy],
    settled: topologyOf(options, policy.copies, groupBits),
    out: [],
    ...(options.secret === undefined ? {} : { secret: options.secret }),
  };
}

/** Nodes and their disks, then the slices: nothing that a map is complete without. */
function groundwork(options: NewCluster, map: ClusterMap): Write[] {
  const writes: Write[] = [];
  for (const { id, address, labels = {}, disk = '' } of options.nodes) {
    writes.push({ type: 'put', key: nodeKey(id), value: formatDocument({ address, labels, life: 0 }) });
    writes.push({ type: 'put', key: diskKey(id), value: formatDocument({ id: disk, founding: true }) });
  }
  for (let slice = 0; slice < sliceCount(map.groupBits); slice++) {
    writes.push({ type: 'put', key: sliceKey(FIRST_POLICY, slice), value: '{}' });
  }
  return writes;
}

/**
 * Makes a cluster in an empty map store: last of all the key `map`, so that a cluster is there wholly or not at all. What
 * an earlier, unfinished try left behind is removed first.
 *
 * @throws ALREADY_EXISTS if the store holds a cluster, BAD_CONFIG, CONFLICT if another one is being made meanwhile
 */
export async function createCluster(
  store: MapStore,
  options: NewCluster,
): Promise<{ readonly map: ClusterMap; readonly revision: Revision }> {
  const map = newMap(options);
  const before = await store.read();
  if (before.entries.some(({ key }) => key === MAP_KEY)) {
    throw new WebdfsError('ALREADY_EXISTS', 'the map store holds a cluster already');
  }
  const writes: Write[] = groundwork(options, map);
  const kept = new Set(writes.map(({ key }) => key));
  const leftovers = before.entries
    .filter(({ key }) => !kept.has(key) && key !== FOUNDING_KEY && !key.startsWith(JOIN_PREFIX))
    .map(({ key }): Write => ({ type: 'delete', key }));
  const all = [...leftovers, ...writes];

  let { revision } = before;
  for (let i = 0; i < all.length; i += BATCH) {
    revision = await step(store, revision, { compare: [FREE], write: all.slice(i, i + BATCH) });
  }
  const last: Write[] = [
    { type: 'put', key: MAP_KEY, value: formatDocument(map) },
    { type: 'delete', key: FOUNDING_KEY },
  ];
  return { map, revision: await step(store, revision, { compare: [FREE], write: last }) };
}

/** One transaction that nobody else's may have come before. */
async function step(
  store: MapStore,
  revision: Revision,
  transaction: { compare: readonly Compare[]; write: readonly Write[] },
): Promise<Revision> {
  const answer = await store.transact({
    compare: [...transaction.compare, { type: 'range', prefix: '', notAfter: revision }],
    write: transaction.write,
  });
  if (!answer.done) throw new WebdfsError('CONFLICT', 'the map store was written to while a cluster was being made');
  return answer.revision;
}
