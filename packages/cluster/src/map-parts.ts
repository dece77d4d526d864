import {
  assert,
  asGroupId,
  type GroupId,
  type GroupKey,
  type NodeId,
  type PolicyId,
  type Revision,
} from '@webdfs/base';
import {
  parseClusterMap,
  parseControllerInfo,
  parseDiskInfo,
  parseDownInfo,
  parseLiveInfo,
  parseNodeInfo,
  parseOverride,
} from './documents.ts';
import { MAP_KEY, type ParsedKey, parseKey, SLICE_GROUPS, sliceOf } from './keys.ts';
import type { ClusterMap, ControllerInfo, DiskInfo, DownInfo, GroupView, LiveInfo, NodeInfo, Override } from './map.ts';
import type { Change, MapContents, MapEntry } from './map-store.ts';
import { type Placements, placementsOf } from './placements.ts';

/** A value with the entry it was read from. */
interface At<T> {
  readonly value: T;
  readonly entry: MapEntry;
}

/** The values in the form in which views show them: they are asked for millions of times. */
interface NodeFacts {
  readonly node?: At<NodeInfo & { readonly revision: Revision }> | undefined;
  readonly disk?: At<DiskInfo & { readonly revision: Revision }> | undefined;
  readonly live?: At<{ readonly info: LiveInfo; readonly session: Revision }> | undefined;
  readonly down?: At<{ readonly info: DownInfo; readonly mark: Revision }> | undefined;
}

/** 64 groups of a policy: their overrides, and what was derived of them so far. */
export interface Slice {
  /** 0: there is no such key. */
  readonly revision: Revision;
  readonly entry: MapEntry | undefined;
  readonly overrides: ReadonlyMap<GroupId, At<Override>>;
  /** Filled as it is asked for; shared by all snapshots in which nothing that decides it has changed. */
  readonly views: (GroupView | undefined)[];
}

/** What one snapshot holds; snapshots share all parts that did not change between them. */
export interface Parts {
  readonly revision: Revision;
  readonly map: At<ClusterMap> | undefined;
  readonly placements: Placements | undefined;
  readonly controller: At<ControllerInfo> | undefined;
  readonly nodes: ReadonlyMap<NodeId, NodeFacts>;
  /** By slice number; holes where there is no key. */
  readonly slices: ReadonlyMap<PolicyId, readonly (Slice | undefined)[]>;
  /** Keys that this program does not know. */
  readonly others: ReadonlyMap<string, MapEntry>;
}

/** Which groups a change may have given another view. */
export type Affected = readonly GroupKey[] | 'all';

export const NO_SLICE: Slice = { revision: 0, entry: undefined, overrides: new Map(), views: [] };

export const EMPTY_PARTS: Parts = {
  revision: 0,
  map: undefined,
  placements: undefined,
  controller: undefined,
  nodes: new Map(),
  slices: new Map(),
  others: new Map(),
};

/** Copies each part when it is first written to. */
class PartsBuilder {
  #parts: Parts;
  #ownNodes: Map<NodeId, NodeFacts> | undefined;
  #ownOthers: Map<string, MapEntry> | undefined;
  readonly #ownSlices = new Map<PolicyId, (Slice | undefined)[]>();
  readonly #groups = new Map<string, GroupKey>();
  #all = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  set(key: string, entry: MapEntry | undefined): void {
    const parsed = parseKey(key);
    if (parsed === undefined) return this.#setOther(key, entry);
    switch (parsed.type) {
      case 'map':
        return this.#setMap(entry);
      case 'controller':
        this.#parts = {
          ...this.#parts,
          controller: entry && { value: parseControllerInfo(key, entry.value), entry },
        };
        return;
      case 'group':
        return this.#setOverride(key, parsed.group, entry);
      case 'slice':
        return this.#setSlice(parsed.policy, parsed.slice, entry);
      case 'node':
      case 'disk':
      case 'live':
      case 'down':
        return this.#setNode(key, parsed, entry);
    }
  }

  #setOther(key: string, entry: MapEntry | undefined): void {
    this.#ownOthers ??= new Map(this.#parts.others);
    if (entry === undefined) this.#ownOthers.delete(key);
    else this.#ownOthers.set(key, entry);
  }

  #setMap(entry: MapEntry | undefined): void {
    const map = entry && { value: parseClusterMap(MAP_KEY, entry.value), entry };
    this.#parts = { ...this.#parts, map, placements: map && placementsOf(map.value, this.#parts.placements) };
    this.#all = true;
  }

  #setNode(
    key: string,
    { type, node }: Extract<ParsedKey, { readonly node: NodeId }>,
    entry: MapEntry | undefined,
  ): void {
    this.#ownNodes ??= new Map(this.#parts.nodes);
    const facts = this.#ownNodes.get(node) ?? {};
    this.#ownNodes.set(node, { ...facts, ...nodeFact(key, type, entry) });
    // an address or a life decides nothing about groups
    if (type !== 'node') this.#all = true;
  }

  #setOverride(key: string, group: GroupKey, entry: MapEntry | undefined): void {
    this.#changeSlice(group.policy, sliceOf(group.group), (slice) => {
      const overrides = new Map(slice.overrides);
      if (entry === undefined) overrides.delete(group.group);
      else overrides.set(group.group, { value: parseOverride(key, entry.value), entry });
      const views = slice.views.slice();
      views[group.group % SLICE_GROUPS] = undefined;
      return { ...slice, overrides, views };
    });
    this.#groups.set(key, group);
  }

  #setSlice(policy: PolicyId, index: number, entry: MapEntry | undefined): void {
    this.#changeSlice(policy, index, (slice) => ({
      ...slice,
      entry,
      revision: entry?.modRevision ?? 0,
      views: [],
    }));
    for (let group = index * SLICE_GROUPS; group < (index + 1) * SLICE_GROUPS; group++) {
      this.#groups.set(`${policy}/${group}`, { policy, group: asGroupId(group) });
    }
  }

  #changeSlice(policy: PolicyId, index: number, change: (slice: Slice) => Slice): void {
    let own = this.#ownSlices.get(policy);
    if (own === undefined) {
      own = (this.#parts.slices.get(policy) ?? []).slice();
      this.#ownSlices.set(policy, own);
    }
    own[index] = change(own[index] ?? { ...NO_SLICE, views: [] });
  }

  finish(revision: Revision): { readonly parts: Parts; readonly affected: Affected } {
    let slices: Parts['slices'] = this.#parts.slices;
    if (this.#ownSlices.size > 0) slices = new Map([...slices, ...this.#ownSlices]);
    if (this.#all) {
      slices = new Map(
        [...slices].map(([policy, all]) => [policy, all.map((slice) => slice && { ...slice, views: [] })]),
      );
    }
    const parts = {
      ...this.#parts,
      revision,
      slices,
      nodes: this.#ownNodes ?? this.#parts.nodes,
      others: this.#ownOthers ?? this.#parts.others,
    };
    return { parts, affected: this.#all ? 'all' : groupsWithin(this.#groups.values(), parts.map?.value) };
  }
}

/** Without groups that the map does not have: keys written before the map, or by mistake. */
function groupsWithin(groups: Iterable<GroupKey>, map: ClusterMap | undefined): GroupKey[] {
  if (map === undefined) return [];
  const policies = new Set(map.policies.map(({ id }) => id));
  return [...groups].filter(({ policy, group }) => policies.has(policy) && group < 2 ** map.groupBits);
}

function nodeFact(key: string, type: keyof NodeFacts, entry: MapEntry | undefined): Partial<NodeFacts> {
  if (entry === undefined) return { [type]: undefined };
  const { value, modRevision: revision } = entry;
  switch (type) {
    case 'node':
      return { node: { value: { ...parseNodeInfo(key, value), revision }, entry } };
    case 'disk':
      return { disk: { value: { ...parseDiskInfo(key, value), revision }, entry } };
    case 'live':
      return { live: { value: { info: parseLiveInfo(key, value), session: revision }, entry } };
    case 'down':
      return { down: { value: { info: parseDownInfo(key, value), mark: revision }, entry } };
  }
}

/** @throws CORRUPT if a value is not what its key promises */
export function partsOf(contents: MapContents): Parts {
  const builder = new PartsBuilder(EMPTY_PARTS);
  for (const entry of contents.entries) builder.set(entry.key, entry);
  return builder.finish(contents.revision).parts;
}

/** @throws CORRUPT if a value is not what its key promises */
export function partsAfter(parts: Parts, change: Change): { readonly parts: Parts; readonly affected: Affected } {
  assert(change.revision > parts.revision, 'changes come in order');
  const builder = new PartsBuilder(parts);
  for (const { key, entry } of change.changes) builder.set(key, entry);
  return builder.finish(change.revision);
}

/** All entries that the parts were made of, in no particular order. */
export function contentsOf(parts: Parts): MapContents {
  const entries: (MapEntry | undefined)[] = [parts.map?.entry, parts.controller?.entry, ...parts.others.values()];
  for (const facts of parts.nodes.values()) {
    entries.push(facts.node?.entry, facts.disk?.entry, facts.live?.entry, facts.down?.entry);
  }
  for (const slices of parts.slices.values()) {
    for (const slice of slices) {
      if (slice === undefined) continue;
      entries.push(slice.entry);
      for (const { entry } of slice.overrides.values()) entries.push(entry);
    }
  }
  return { revision: parts.revision, entries: entries.filter((entry) => entry !== undefined) };
}
