import { asGroupId, asNodeId, type GroupKey, type NodeId, type Revision, SeededRandom } from '@webdfs/base';
import type { AlgorithmName, Topology } from '@webdfs/placement';
import { FIRST_POLICY } from '../create-cluster.ts';
import { formatDocument } from '../documents.ts';
import { KeySpace } from '../key-space.ts';
import { CONTROLLER_KEY, DOWN_PREFIX, liveKey, MAP_KEY, sliceKey } from '../keys.ts';
import type { ClusterMap, GroupView } from '../map.ts';
import type { Compare, Transaction, Write } from '../map-store.ts';
import { MapSnapshot } from '../map-view.ts';
import type { NodeMemory } from '../node-memory.ts';
import type { CaughtUp, Proposal } from '../propose.ts';

/** A rule of the protocol that is left out on purpose, to see that the checks notice. */
export const FLAWS = [
  'marks are not compared',
  'the configuration is not compared',
  'the session of a learner is not compared',
  'the session of the primary is not compared',
  'a learner counts before it is waited for',
  'a slice is swept without being rewritten',
  'slices are swept while nodes are marked',
  'a new disk is registered without a mark',
  'a mark forgets those before it',
  'marks are removed early',
  'a primary that moves away goes on serving',
  'nobody waits for a fenced primary',
  'an override forgets who may still serve',
  'eligible nodes stay so when enough are in sync',
] as const;
export type Flaw = (typeof FLAWS)[number];

/** An entry of a group's log: the ballot it was first given, and a number of its own. */
export interface WorldEntry {
  readonly ballot: number;
  readonly id: number;
}

export interface WorldNode {
  readonly id: NodeId;
  running: boolean;
  session: Revision;
  diskId: string;
  memory: NodeMemory | undefined;
  /** Its own copy of the map: a prefix of the history. */
  view: MapSnapshot;
  readonly logs: WorldEntry[][];
  /** By group: the ballot in which this node has levelled the members and serves, and one it must not serve in again. */
  readonly serving: number[];
  readonly yielded: number[];
}

/** A primary's change that was sent, and whose fate it does not know yet. */
export interface PendingJoin {
  readonly group: number;
  readonly primary: NodeId;
  readonly session: Revision;
  readonly proposal: Proposal;
  readonly learners: readonly CaughtUp[];
  /** Whether the store has carried it out; undefined: it has not come there yet. The primary does not know. */
  done?: boolean;
}

export interface WorldOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly copies: number;
  readonly minCopies: number;
  readonly algorithm?: AlgorithmName;
  readonly flaw?: Flaw;
  /** The number of copies changes while it runs. */
  readonly changesPolicies?: boolean;
}

export const GROUP_BITS = 1;
export const GROUPS = 2 ** GROUP_BITS;
const CLUSTER = '0123456789abcdef0123456789abcdef';

export function keyOf(group: number): GroupKey {
  return { policy: FIRST_POLICY, group: asGroupId(group) };
}

function topologyWith(options: WorldOptions, ids: readonly NodeId[]): Topology {
  return {
    algorithm: options.algorithm ?? 'wrd',
    version: 1,
    seed: options.seed,
    copies: options.copies,
    subclusters: [{ id: 1, nodes: ids.map((id) => ({ id, weight: 65_536, labels: {} })) }],
  };
}

/**
 * A cluster as far as the map decides it, in one place and without time: nodes with logs, maps that lag, and a history of
 * each group that holds what anybody may have been told. What it does next is chance; what must hold is checked
 * elsewhere.
 */
export class World {
  readonly options: WorldOptions;
  readonly random: SeededRandom;
  readonly space = new KeySpace();
  readonly nodes: readonly WorldNode[];
  readonly snapshots: MapSnapshot[] = [];
  readonly joins: PendingJoin[] = [];
  /** By group: the longest log that a client may have been told of. */
  readonly history: (readonly WorldEntry[])[] = Array.from({ length: GROUPS }, () => []);
  count = 0;
  /** The node that hears late. */
  slow: NodeId = asNodeId(1);

  constructor(options: WorldOptions) {
    this.options = options;
    this.random = new SeededRandom(options.seed);
    const ids = Array.from({ length: options.nodes }, (_, i) => asNodeId(i + 1));
    this.nodes = ids.map((id) => ({
      id,
      running: false,
      session: 0,
      diskId: `disk ${id}`,
      memory: undefined,
      view: MapSnapshot.empty,
      logs: Array.from({ length: GROUPS }, () => []),
      serving: Array.from({ length: GROUPS }, () => 0),
      yielded: Array.from({ length: GROUPS }, () => 0),
    }));
    this.#found(ids);
  }

  #found(ids: readonly NodeId[]): void {
    const { copies, minCopies } = this.options;
    const map: ClusterMap = {
      cluster: CLUSTER,
      name: 'world',
      era: 0,
      groupBits: GROUP_BITS,
      policies: [{ id: FIRST_POLICY, name: `replicas=${copies}`, copies, minCopies, minCopiesSince: 0 }],
      // the last node joins later
      settled: topologyWith(this.options, ids.slice(0, -1)),
      out: [],
    };
    const put = (key: string, value: string): Write => ({ type: 'put', key, value });
    this.#apply([
      ...ids.map((id) => put(`disk/${id}`, formatDocument({ id: `disk ${id}`, founding: true }))),
      put(sliceKey(FIRST_POLICY, 0), '{}'),
    ]);
    this.#apply([
      put(MAP_KEY, formatDocument(map)),
      put(CONTROLLER_KEY, formatDocument({ node: asNodeId(1), session: 1 })),
    ]);
    // nobody has seen the map before it was whole
    this.snapshots.splice(0, this.snapshots.length - 1);
    for (const node of this.nodes) node.view = this.now;
  }

  get now(): MapSnapshot {
    return this.snapshots.at(-1)!;
  }

  get controller(): Revision {
    return this.now.controller()!.createRevision;
  }

  node(id: NodeId): WorldNode {
    return this.nodes[id - 1]!;
  }

  /** The whole topology, or without its last node. */
  topology(whole: boolean): Topology {
    const ids = this.nodes.map(({ id }) => id);
    return topologyWith(this.options, whole ? ids : ids.slice(0, -1));
  }

  has(flaw: Flaw): boolean {
    return this.options.flaw === flaw;
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from.length === 0 ? undefined : from[this.random.below(from.length)];
  }

  /** A map somebody may decide by: the newest, or one not long past. */
  someMap(): MapSnapshot {
    const back = this.random.fraction() < 0.6 ? 0 : this.random.below(Math.min(6, this.snapshots.length - 1));
    return this.snapshots[this.snapshots.length - 1 - back]!;
  }

  /** Performs a transaction, unless a condition that is not left out fails. */
  transact(transaction: Transaction): boolean {
    if (!transaction.compare.every((compare) => this.#isLeftOut(compare) || this.space.holds(compare))) return false;
    const writes = this.space.effective(transaction.write);
    if (writes.length > 0) this.#apply(writes);
    return true;
  }

  #isLeftOut(compare: Compare): boolean {
    if (this.has('marks are not compared')) return compare.type === 'range' && compare.prefix === DOWN_PREFIX;
    if (compare.type !== 'modified') return false;
    if (this.has('the configuration is not compared')) return /^(group|slice)\//.test(compare.key);
    return false;
  }

  #apply(writes: readonly Write[]): void {
    const change = this.space.apply(this.space.revision + 1, writes);
    const before = this.snapshots.at(-1) ?? MapSnapshot.empty;
    this.snapshots.push(before.next(change).snapshot);
  }

  view(group: number): GroupView {
    return this.now.group(keyOf(group));
  }

  isLive(node: WorldNode): boolean {
    return node.running && node.session > 0 && this.now.live(node.id)?.session === node.session;
  }

  /** The node has the disk that the map knows; what it holds counts. */
  isIntact(node: WorldNode): boolean {
    return this.now.disk(node.id)?.id === node.diskId;
  }

  loseSession(node: WorldNode): void {
    this.transact({ compare: [], write: [{ type: 'delete', key: liveKey(node.id) }] });
  }
}

/** Which of two logs a takeover adopts: by the ballot of the last entry, then by length. */
export function isAhead(a: readonly WorldEntry[], b: readonly WorldEntry[]): boolean {
  const [x, y] = [a.at(-1)?.ballot ?? 0, b.at(-1)?.ballot ?? 0];
  return x === y ? a.length > b.length : x > y;
}

export function isPrefix(short: readonly WorldEntry[], long: readonly WorldEntry[]): boolean {
  return short.length <= long.length && short.every(({ id }, i) => long[i]!.id === id);
}
