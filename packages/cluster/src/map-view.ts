import {
  asGroupId,
  asNodeId,
  type GroupKey,
  type NodeId,
  type PolicyId,
  type Revision,
  WebdfsError,
} from '@webdfs/base';
import { derive } from './derive.ts';
import { FROZEN_KEY, SLICE_GROUPS, sliceOf } from './keys.ts';
import type {
  ClusterMap,
  ControllerInfo,
  DiskInfo,
  DownInfo,
  GroupView,
  LiveInfo,
  NodeInfo,
  Override,
  Policy,
} from './map.ts';
import type { Change, MapContents } from './map-store.ts';
import {
  type Affected,
  contentsOf,
  EMPTY_PARTS,
  NO_SLICE,
  type Parts,
  partsAfter,
  partsOf,
  type Slice,
} from './map-parts.ts';
import { wantedCopies } from './policy-change.ts';
import type { MapView } from './view.ts';

export type { Affected } from './map-parts.ts';

/** Of each slice's overrides, once: slices that did not change are shared between snapshots. */
const HOLDERS = new WeakMap<ReadonlyMap<unknown, unknown>, readonly NodeId[]>();

/** Nodes that hold groups by an override. */
function holdersIn(slice: Slice | undefined): readonly NodeId[] {
  if (slice === undefined || slice.overrides.size === 0) return [];
  let holders = HOLDERS.get(slice.overrides);
  if (holders === undefined) {
    const all = [...slice.overrides.values()].flatMap(({ value }) => [...value.members, ...value.eligible]);
    holders = [...new Set(all)];
    HOLDERS.set(slice.overrides, holders);
  }
  return holders;
}

/**
 * The map at one revision. Snapshots are immutable and share what did not change: deriving the next one costs what the
 * change names, not what the map holds, and a group's view is computed once for all snapshots in which it is the same.
 */
export class MapSnapshot implements MapView {
  /** Before anything was written. */
  static readonly empty: MapSnapshot = new MapSnapshot(EMPTY_PARTS);

  readonly #parts: Parts;
  #nodes: readonly NodeId[] | undefined;
  #marked: readonly NodeId[] | undefined;

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** @throws CORRUPT if a value is not what its key promises */
  static of(contents: MapContents): MapSnapshot {
    return new MapSnapshot(partsOf(contents));
  }

  /**
   * The snapshot after one more revision, and the groups whose view may differ.
   *
   * @throws CORRUPT if a value is not what its key promises
   */
  next(change: Change): { readonly snapshot: MapSnapshot; readonly affected: Affected } {
    const { parts, affected } = partsAfter(this.#parts, change);
    return { snapshot: new MapSnapshot(parts), affected };
  }

  /** Whether it was made of just these entries. */
  shows({ entries }: MapContents): boolean {
    const own = new Map(this.contents().entries.map(({ key, modRevision }) => [key, modRevision]));
    return own.size === entries.length && entries.every(({ key, modRevision }) => own.get(key) === modRevision);
  }

  /** All keys, as the store gave them: what a node keeps as its copy. */
  contents(): MapContents {
    return contentsOf(this.#parts);
  }

  get revision(): Revision {
    return this.#parts.revision;
  }

  /** Whether the map was taken to another store: nothing goes on here. */
  get frozen(): boolean {
    return this.#parts.others.has(FROZEN_KEY);
  }

  /** Whether there is a cluster at all. */
  get founded(): boolean {
    return this.#parts.map !== undefined;
  }

  get map(): ClusterMap {
    return this.#founded().value;
  }

  get mapRevision(): Revision {
    return this.#founded().entry.modRevision;
  }

  #founded(): NonNullable<Parts['map']> {
    const { map } = this.#parts;
    if (map === undefined) throw new WebdfsError('NOT_FOUND', 'the map store holds no cluster');
    return map;
  }

  policy(id: PolicyId): Policy {
    const policy = this.map.policies.find((policy) => policy.id === id);
    if (policy === undefined) throw new WebdfsError('NOT_FOUND', `the map has no policy ${id}`);
    return policy;
  }

  nodes(): readonly NodeId[] {
    const { settled, target } = this.map;
    const topologies = target === undefined ? [settled] : [settled, target];
    const slices = [...this.#parts.slices.values()].flat();
    this.#nodes ??= [...new Set([...topologies.flatMap(nodesOf), ...slices.flatMap(holdersIn)])].toSorted(
      (a, b) => a - b,
    );
    return this.#nodes;
  }

  node(node: NodeId): (NodeInfo & { readonly revision: Revision }) | undefined {
    return this.#parts.nodes.get(node)?.node?.value;
  }

  disk(node: NodeId): (DiskInfo & { readonly revision: Revision }) | undefined {
    return this.#parts.nodes.get(node)?.disk?.value;
  }

  live(node: NodeId): { readonly info: LiveInfo; readonly session: Revision } | undefined {
    return this.#parts.nodes.get(node)?.live?.value;
  }

  down(node: NodeId): { readonly info: DownInfo; readonly mark: Revision } | undefined {
    return this.#parts.nodes.get(node)?.down?.value;
  }

  marked(): readonly NodeId[] {
    this.#marked ??= [...this.#parts.nodes]
      .filter(([, facts]) => facts.down !== undefined)
      .map(([node]) => node)
      .toSorted((a, b) => a - b);
    return this.#marked;
  }

  controller(): { readonly info: ControllerInfo; readonly createRevision: Revision } | undefined {
    const at = this.#parts.controller;
    return at && { info: at.value, createRevision: at.entry.createRevision };
  }

  override(group: GroupKey): { readonly value: Override; readonly revision: Revision } | undefined {
    const at = this.#slice(group.policy, sliceOf(group.group)).overrides.get(group.group);
    return at && { value: at.value, revision: at.entry.modRevision };
  }

  overridden(policy: PolicyId, slice?: number): readonly GroupKey[] {
    const all = slice === undefined ? (this.#parts.slices.get(policy) ?? []) : [this.#slice(policy, slice)];
    return all.flatMap((found) => [...(found?.overrides.keys() ?? [])].map((group) => ({ policy, group })));
  }

  sliceRevision(policy: PolicyId, slice: number): Revision {
    return this.#slice(policy, slice).revision;
  }

  placed(group: GroupKey): readonly NodeId[] {
    return this.#placements().placed(group.group, this.policy(group.policy).copies);
  }

  goal(group: GroupKey): readonly NodeId[] {
    return this.#placements().goal(group.group, wantedCopies(this.policy(group.policy)));
  }

  group(group: GroupKey): GroupView {
    const { views } = this.#slice(group.policy, sliceOf(group.group));
    const within = group.group % SLICE_GROUPS;
    const known = views[within];
    if (known !== undefined) return known;
    const view = derive(this, group);
    // the empty slice stands for all that are missing: nothing may be remembered there
    if (views !== NO_SLICE.views) views[within] = view;
    return view;
  }

  #placements(): NonNullable<Parts['placements']> {
    this.#founded();
    return this.#parts.placements!;
  }

  #slice(policy: PolicyId, slice: number): typeof NO_SLICE {
    return this.#parts.slices.get(policy)?.[slice] ?? NO_SLICE;
  }
}

function nodesOf(topology: ClusterMap['settled']): NodeId[] {
  return topology.subclusters.flatMap(({ nodes }) => nodes.map(({ id }) => asNodeId(id)));
}

/** Every group of every policy of a map. */
export function* allGroups(map: ClusterMap): Generator<GroupKey> {
  for (const { id } of map.policies) {
    for (let group = 0; group < 2 ** map.groupBits; group++) yield { policy: id, group: asGroupId(group) };
  }
}
