import type { GroupId, NodeId } from './ids.ts';

/** A node's weight as 16.16 fixed point: 65 536 = 1. Integers, so that sums are the same in any order. 0 = draining. */
export type Weight = number;
export const UNIT_WEIGHT = 65_536;
/** A calibration factor of 1, in 16.16 as well: that of a domain which the topology gives none. */
export const UNIT_FACTOR = 65_536;

/** What may fail together, outermost first. */
export type DomainLabel = 'zone' | 'rack' | 'machine';

export interface TopologyNode {
  readonly id: NodeId;
  readonly weight: Weight;
  /** A missing label is the node itself. */
  readonly labels: Readonly<Partial<Record<DomainLabel, string>>>;
}

/** Nodes added together; the order in a topology is their age, oldest first. */
export interface Subcluster {
  readonly id: number;
  readonly nodes: readonly TopologyNode[];
}

/** A group placed by hand: `from` is replaced by `to`. */
export interface Pin {
  readonly group: GroupId;
  readonly from: NodeId;
  readonly to: NodeId;
}

export const ALGORITHMS = [
  'wrd',
  'rush-r',
  'rush-r-shuffle',
  'rush-p',
  'rush-t',
  'straw2',
  'straw2-tree',
  'rendezvous',
  'ring',
  'jump',
  'hdfs-random',
] as const;
export type AlgorithmName = (typeof ALGORITHMS)[number];

/** Where the groups lie, as an algorithm that remembers left it. */
export interface PublishedTable {
  /** log2 of the number of groups. */
  readonly groupBits: number;
  /** Columns: copies per group. */
  readonly copies: number;
  /** 2^groupBits × copies node ids, group after group, 16 bits each, little-endian, in base64. 0 is nobody. */
  readonly rows: string;
}

/** Everything that decides where groups lie. Plain JSON: it is part of the map. */
export interface Topology {
  readonly algorithm: AlgorithmName;
  /** Version of the algorithm; a frozen file of mappings exists for each. */
  readonly version: 1;
  /** Hash seed, u32. */
  readonly seed: number;
  /** Copies that the calibration factors are for. */
  readonly copies: number;
  /** The label whose values keep copies apart where there are enough; undefined: only nodes are kept apart. */
  readonly domain?: DomainLabel;
  readonly subclusters: readonly Subcluster[];
  /** Calibration factor of each domain, 16.16 fixed point; absent: 1. Only `wrd` and `rendezvous` use them. */
  readonly factors?: Readonly<Record<string, number>>;
  readonly pins?: readonly Pin[];
  /** The table of an algorithm that remembers (`ring`, `hdfs-random`). */
  readonly table?: PublishedTable;
}
