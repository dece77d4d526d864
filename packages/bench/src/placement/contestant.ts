import { WebdfsError } from '@webdfs/base';
import {
  algorithmOf,
  type AlgorithmName,
  ALGORITHMS,
  publishTopology,
  type Topology,
  UNIT_WEIGHT,
  validateTopology,
} from '@webdfs/placement';
import type { Subclusters } from './layout.ts';
import { originalKeys } from './original/original-names.ts';
import { type OriginalLocator, originalRushP, originalRushR } from './original/original-locators.ts';
import type { Placed } from './placed.ts';

/** What is to be placed. */
export interface Task {
  readonly subclusters: Subclusters;
  readonly copies: number;
  readonly groupCount: number;
  readonly seed: number;
  /** The label that keeps copies apart, for algorithms that honour one. */
  readonly domain?: 'zone' | 'rack' | 'machine';
}

export interface Placing {
  /** The placement that this one follows. */
  readonly before?: Placed;
  /** A node was lost: nobody publishes anything, what was published before stays. */
  readonly unplanned?: boolean;
}

/** One way to place, as the experiments see it. */
export interface Contestant {
  readonly name: string;
  /** Whether another seed gives another placement. */
  readonly seeded: boolean;
  /** Whether the first groups lie alike, however many there are. */
  readonly prefixes: boolean;
  /** Why it cannot do this; undefined if it can. */
  refusal(task: Task): string | undefined;
  /** May place fewer groups than asked for, if it cannot place that number. */
  place(task: Task, placing?: Placing): Placed;
  /** One look-up of all copies of a group, with everything that can be prepared done. */
  locator(task: Task): (group: number) => readonly number[];
}

function storesOf(algorithm: AlgorithmName): 'nothing' | 'factors' | 'table' {
  return algorithmOf({ algorithm, version: 1 }).supports.stores;
}

/** A stored table has a power of two of groups: the next below what is asked for. */
function groupCountOf(algorithm: AlgorithmName, task: Task): number {
  return storesOf(algorithm) === 'table' ? 2 ** Math.floor(Math.log2(task.groupCount)) : task.groupCount;
}

function topologyFor(algorithm: AlgorithmName, task: Task): Topology {
  const { seed, copies, domain, subclusters } = task;
  return { algorithm, version: 1, seed, copies, ...(domain === undefined ? {} : { domain }), subclusters };
}

function published(topology: Topology, groupCount: number, placing: Placing): Topology {
  const before = placing.before?.published;
  // a table must be made anew when nodes go; calibration factors are kept then
  if (placing.unplanned === true && storesOf(topology.algorithm) !== 'table') {
    return before?.factors === undefined ? topology : { ...topology, factors: before.factors };
  }
  const groupBits = Math.ceil(Math.log2(groupCount));
  return publishTopology(topology, { groupBits, ...(before === undefined ? {} : { before }) });
}

function rowsOf(locate: (group: number) => readonly number[], groupCount: number, copies: number): Uint16Array {
  const rows = new Uint16Array(groupCount * copies);
  for (let group = 0; group < groupCount; group++) rows.set(locate(group), group * copies);
  return rows;
}

/** @param topology  as published */
function locatorFor(topology: Topology): (group: number) => readonly number[] {
  const place = algorithmOf(topology).prepare(topology);
  return (group) => place(group, topology.copies);
}

/**
 * Baselines are measured where no cluster may use them: without a place in the map, or blind to weight. Of them, and of tables
 * that are still to be made, only the topology is judged.
 */
function refusalOf(topology: Topology): string | undefined {
  const { supports } = algorithmOf(topology);
  const strict = supports.lookup && supports.weights && supports.stores !== 'table';
  return validateTopology(strict ? topology : { ...topology, algorithm: 'wrd' }).errors[0];
}

/** @param calibrated  with what a publisher stores; `false` shows the algorithm bare */
function algorithmContestant(algorithm: AlgorithmName, calibrated: boolean): Contestant {
  return {
    name: calibrated ? algorithm : `${algorithm}${BARE}`,
    seeded: true,
    prefixes: storesOf(algorithm) !== 'table',
    refusal: (task) => refusalOf(topologyFor(algorithm, task)),
    place(task, placing = {}) {
      const topology = topologyFor(algorithm, task);
      const { subclusters, copies } = task;
      const groupCount = groupCountOf(algorithm, task);
      const given = calibrated ? published(topology, groupCount, placing) : topology;
      const rows = rowsOf(locatorFor(given), groupCount, copies);
      return { subclusters, copies, groupCount, rows, published: given };
    },
    locator(task) {
      const topology = topologyFor(algorithm, task);
      return locatorFor(calibrated ? published(topology, groupCountOf(algorithm, task), {}) : topology);
    },
  };
}

const BARE = '-uncalibrated';
const CALIBRATED = ALGORITHMS.filter((name) => storesOf(name) === 'factors');
const ORIGINALS: Readonly<Record<string, typeof originalRushR>> = {
  'original-rush-r': originalRushR,
  'original-rush-p': originalRushP,
};

function originalContestant(name: string): Contestant {
  const build = ORIGINALS[name]!;
  const keys = originalKeys();
  const locatorOf = (task: Task): OriginalLocator =>
    build(
      task.subclusters.map(({ nodes }) => ({
        weight: (nodes[0]?.weight ?? 0) / UNIT_WEIGHT,
        disks: nodes.map((node) => node.id),
      })),
      task.copies,
    );
  return {
    name,
    seeded: false,
    prefixes: true,
    refusal(task) {
      if (task.groupCount > keys.length)
        return `places the ${keys.length} objects of 2009, not ${task.groupCount} groups`;
      if (task.domain !== undefined) return 'does not know racks';
      const uneven = task.subclusters.find(({ nodes }) => nodes.some(({ weight }) => weight !== nodes[0]!.weight));
      if (uneven !== undefined) return `knows one weight per sub-cluster, and ${uneven.id} has several`;
      return undefined;
    },
    place(task) {
      const { subclusters, copies, groupCount } = task;
      const locate = locatorOf(task);
      return { subclusters, copies, groupCount, rows: rowsOf((group) => locate(keys[group]!), groupCount, copies) };
    },
    locator(task) {
      const locate = locatorOf(task);
      return (group) => locate(keys[group % keys.length]!);
    },
  };
}

/** Every name that `contestantsOf` knows. */
export const CONTESTANTS: readonly string[] = [
  ...ALGORITHMS,
  ...CALIBRATED.map((name) => `${name}${BARE}`),
  ...Object.keys(ORIGINALS),
];

/** @throws WebdfsError INVALID if there is no such way to place, or a name comes twice */
export function contestantsOf(names: readonly string[]): Contestant[] {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new WebdfsError('INVALID', `${twice} is named twice`);
  return names.map((name) => {
    const algorithm = ALGORITHMS.find((known) => known === name);
    if (algorithm !== undefined) return algorithmContestant(algorithm, true);
    const bare = CALIBRATED.find((known) => `${known}${BARE}` === name);
    if (bare !== undefined) return algorithmContestant(bare, false);
    if (Object.hasOwn(ORIGINALS, name)) return originalContestant(name);
    throw new WebdfsError('INVALID', `unknown placement ${name}; there are ${CONTESTANTS.join(', ')}`);
  });
}
