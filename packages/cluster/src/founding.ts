import { asNodeId, messageOf, WebdfsError } from '@webdfs/base';
import { ALGORITHMS, type AlgorithmName } from '@webdfs/placement';
import type { NewCluster } from './create-cluster.ts';
import { FOUNDING_KEY, JOIN_PREFIX, MAP_KEY } from './keys.ts';
import type { MapContents, MapStore } from './map-store.ts';

/**
 * The key `founding`: a cluster that is to be made once enough nodes ask to be in it. What nodes alone know, their labels
 * and weights, decides where groups lie, so the map is made of what they announce.
 */
export interface Founding {
  /** It is made with so many nodes. */
  readonly nodes: number;
  readonly copies: number;
  readonly algorithm: AlgorithmName;
  readonly groupBits: number;
  /** By this label copies are kept apart; missing: the widest one that has values enough. */
  readonly domain?: Domain;
  /** Which cluster secret nodes must know (`secretName`). */
  readonly secret: string;
}

/** The key `join/<storeId>`, bound to the lease of the process that asks. */
export interface Joining {
  readonly labels: Readonly<Record<string, string>>;
  readonly weight: number;
}

/** Widest first. */
const DOMAINS = ['zone', 'rack', 'machine'] as const;
export type Domain = (typeof DOMAINS)[number];

const MAX_NODES = 1_024;

function fieldsOf(key: string, text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch (error) {
    throw new WebdfsError('CORRUPT', `map store: ${key} is not JSON: ${messageOf(error)}`);
  }
  throw new WebdfsError('CORRUPT', `map store: ${key} is not an object`);
}

function within(key: string, value: unknown, name: string, [least, most]: readonly [number, number]): number {
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw new WebdfsError('CORRUPT', `map store: ${key}: ${name} is ${JSON.stringify(value)}`);
}

function count(key: string, value: unknown, name: string, bounds: readonly [number, number]): number {
  if (!Number.isInteger(value)) throw new WebdfsError('CORRUPT', `map store: ${key}: ${name} is no whole number`);
  return within(key, value, name, bounds);
}

/** @throws CORRUPT */
export function parseFounding(text: string): Founding {
  const fields = fieldsOf(FOUNDING_KEY, text);
  const algorithm = ALGORITHMS.find((name) => name === fields['algorithm']);
  const domain = DOMAINS.find((name) => name === fields['domain']);
  const { secret } = fields;
  if (algorithm === undefined || typeof secret !== 'string') {
    throw new WebdfsError('CORRUPT', `map store: ${FOUNDING_KEY} lacks its fields`);
  }
  return {
    nodes: count(FOUNDING_KEY, fields['nodes'], 'nodes', [1, MAX_NODES]),
    copies: count(FOUNDING_KEY, fields['copies'], 'copies', [1, 32]),
    groupBits: count(FOUNDING_KEY, fields['groupBits'], 'groupBits', [0, 16]),
    algorithm,
    secret,
    ...(domain === undefined ? {} : { domain }),
  };
}

/** @throws CORRUPT */
export function parseJoining(key: string, text: string): Joining {
  const { labels, weight } = fieldsOf(key, text);
  if (typeof labels !== 'object' || labels === null)
    throw new WebdfsError('CORRUPT', `map store: ${key} has no labels`);
  const entries = Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { labels: Object.fromEntries(entries), weight: within(key, weight, 'weight', [0, 65_535]) };
}

/** The label that keeps copies apart best: the widest with at least as many values as there are copies. */
function widestDomain(joining: readonly Joining[], copies: number): Domain | undefined {
  return DOMAINS.find((name) => {
    const values = new Set(joining.map(({ labels }) => labels[name]));
    return !values.has(undefined) && values.size >= copies;
  });
}

/**
 * The cluster that a founding and those who have announced themselves make; undefined while they are too few. Of more than
 * enough the first ones by the ids of their folders are in it; whoever computes it computes the same.
 */
export function foundedOf(name: string, { entries }: MapContents): Omit<NewCluster, 'random'> | undefined {
  const text = entries.find(({ key }) => key === FOUNDING_KEY)?.value;
  if (text === undefined) return undefined;
  const founding = parseFounding(text);
  const joining = entries
    .filter(({ key }) => key.startsWith(JOIN_PREFIX))
    .map(({ key, value }) => ({ disk: key.slice(JOIN_PREFIX.length), ...parseJoining(key, value) }))
    .toSorted((a, b) => (a.disk < b.disk ? -1 : 1))
    .slice(0, founding.nodes);
  if (joining.length < founding.nodes) return undefined;
  const { copies, algorithm, groupBits, secret } = founding;
  const domain = founding.domain ?? widestDomain(joining, copies);
  return {
    name,
    nodes: joining.map(({ disk, labels, weight }, i) => ({ id: asNodeId(i + 1), address: '', labels, weight, disk })),
    copies,
    algorithm,
    groupBits,
    secret,
    ...(domain === undefined ? {} : { domain }),
  };
}

/**
 * Says what a cluster will be. It may be said anew as long as the cluster is not made.
 *
 * @throws ALREADY_EXISTS if there is a cluster, BAD_CONFIG if there would be fewer nodes than copies
 */
export async function announceFounding(store: MapStore, founding: Founding): Promise<void> {
  if (founding.copies > founding.nodes) {
    throw new WebdfsError('BAD_CONFIG', `${founding.copies} copies need at least as many nodes, not ${founding.nodes}`);
  }
  const { done } = await store.transact({
    compare: [{ type: 'modified', key: MAP_KEY, is: 0 }],
    write: [{ type: 'put', key: FOUNDING_KEY, value: JSON.stringify(founding) }],
  });
  if (!done) throw new WebdfsError('ALREADY_EXISTS', 'the map store holds a cluster of that name already');
}
