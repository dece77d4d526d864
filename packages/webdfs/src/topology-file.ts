import { messageOf, WebdfsError } from '@webdfs/base';
import {
  ALGORITHMS,
  asTopology,
  DOMAIN_LABELS,
  type DomainLabel,
  type NodeId,
  type Pin,
  publishTopology,
  type Topology,
  type TopologyNode,
  UNIT_WEIGHT,
} from '@webdfs/placement';
import { FileEntries, type Path } from './file-entries.ts';

/**
 * A cluster described by hand: what there is or might be. docs/guide/planning.md shows the format to its writer.
 *
 * A file with `version` is a topology as the map keeps it, in JSON, with weights in 16.16 fixed point.
 */
export interface TopologyFile {
  /** As it would be published. */
  readonly topology: Topology;
  /** log2 of the number of groups. */
  readonly groupBits: number;
  /** Bytes of everything stored, counted once; undefined: not told. */
  readonly storedBytes: number | undefined;
  /** Bytes that nodes have room for, where told. */
  readonly capacities: ReadonlyMap<NodeId, number>;
}

const MAX_BYTES = 16 * 1024 * 1024;
const MAX_ID = 65_535;
const MAX_WEIGHT = 65_535;
const MAX_COPIES = 32;
const MAX_PINS = 65_536;
const DEFAULT_GROUPS = 16_384;

const TOP = ['name', 'algorithm', 'seed', 'copies', 'groups', 'domain', 'stored', 'subclusters', 'factors', 'pins'];
const SHARED = ['weight', 'capacity', ...DOMAIN_LABELS];

const UNIT: Readonly<Record<string, number>> = {
  B: 1,
  ...Object.fromEntries(['k', 'M', 'G', 'T', 'P'].map((prefix, i) => [`${prefix}B`, 1000 ** (i + 1)])),
  ...Object.fromEntries(['K', 'M', 'G', 'T', 'P'].map((prefix, i) => [`${prefix}iB`, 1024 ** (i + 1)])),
};

/** `12 TB`, `1.5TiB`, or a number of bytes; undefined if it is none of these. */
export function parseBytes(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?) ?([A-Za-z]*)$/.exec(text);
  const unit = match?.[2] === '' ? 1 : UNIT[match?.[2] ?? ''];
  return match === null || unit === undefined ? undefined : Math.round(Number(match[1]) * unit);
}

/** `1-8, 11`: the ids it stands for, or undefined. */
export function parseIds(text: string): number[] | undefined {
  const ids: number[] = [];
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part);
    if (match === null) return undefined;
    const first = Number(match[1]);
    const last = Number(match[2] ?? first);
    if (last < first || last > MAX_ID) return undefined;
    for (let id = first; id <= last; id++) ids.push(id);
  }
  return ids;
}

/** What a sub-cluster says for its nodes, and a node for itself. */
interface Traits {
  readonly weight: number;
  readonly capacity: number | undefined;
  readonly labels: TopologyNode['labels'];
}

/** Reads one file; collects the capacities on the way. */
class TopologyReader {
  readonly #entries: FileEntries;
  readonly capacities = new Map<NodeId, number>();
  readonly #nodeIds = new Set<number>();
  readonly #subclusterIds = new Set<number>();
  #highest = 0;

  constructor(entries: FileEntries) {
    this.#entries = entries;
  }

  bytes(value: unknown, path: Path): number | undefined {
    if (value === undefined) return undefined;
    const bytes = typeof value === 'number' || typeof value === 'string' ? parseBytes(String(value)) : undefined;
    return bytes ?? this.#entries.refuse(path, `is ${JSON.stringify(value)}, not a size like 12 TB or 1.5 TiB`);
  }

  #traits(fields: Readonly<Record<string, unknown>>, path: Path, shared: Traits): Traits {
    const labels: Partial<Record<DomainLabel, string>> = { ...shared.labels };
    for (const label of DOMAIN_LABELS) {
      if (fields[label] !== undefined) labels[label] = this.#entries.text(fields[label], [...path, label]);
    }
    const weight = fields['weight'];
    return {
      weight: weight === undefined ? shared.weight : this.#entries.number(weight, [...path, 'weight'], 0, MAX_WEIGHT),
      capacity: this.bytes(fields['capacity'], [...path, 'capacity']) ?? shared.capacity,
      labels,
    };
  }

  #node(id: number, { weight, capacity, labels }: Traits, path: Path): TopologyNode {
    if (this.#nodeIds.has(id)) this.#entries.refuse(path, `lists node ${id} a second time`);
    this.#nodeIds.add(id);
    this.#highest = Math.max(this.#highest, id);
    if (capacity !== undefined) this.capacities.set(id as NodeId, capacity);
    return { id: id as NodeId, weight: Math.round(weight * UNIT_WEIGHT), labels };
  }

  #ids(text: string, path: Path): number[] {
    return parseIds(text) ?? this.#entries.refuse(path, `is "${text}", not ids like 1-8 or 1-8, 11`);
  }

  /** `nodes: 1-8`, or a list of ids, ranges and nodes with traits of their own. */
  #nodes(value: unknown, path: Path, shared: Traits): TopologyNode[] {
    if (typeof value === 'string') return this.#ids(value, path).map((id) => this.#node(id, shared, path));
    return this.#entries.list(value, path, MAX_ID).flatMap((entry, i) => {
      const at = [...path, i];
      if (typeof entry === 'number' || typeof entry === 'string') {
        return this.#ids(String(entry), at).map((id) => this.#node(id, shared, at));
      }
      const fields = this.#entries.fields(entry, at, ['id', ...SHARED]);
      const id = this.#entries.whole(fields['id'], [...at, 'id'], 1, MAX_ID);
      return [this.#node(id, this.#traits(fields, at, shared), at)];
    });
  }

  subcluster(value: unknown, path: Path, position: number): Topology['subclusters'][number] {
    const fields = this.#entries.fields(value, path, ['id', 'nodes', 'count', ...SHARED]);
    const id =
      fields['id'] === undefined ? position + 1 : this.#entries.whole(fields['id'], [...path, 'id'], 0, 0xffff_ffff);
    if (this.#subclusterIds.has(id)) this.#entries.refuse(path, `is a second sub-cluster ${id}`);
    this.#subclusterIds.add(id);
    const shared = this.#traits(fields, path, { weight: 1, capacity: undefined, labels: {} });
    if (fields['count'] === undefined) return { id, nodes: this.#nodes(fields['nodes'], [...path, 'nodes'], shared) };
    if (fields['nodes'] !== undefined) this.#entries.refuse([...path, 'count'], 'and nodes exclude each other');
    const first = this.#highest + 1;
    const count = this.#entries.whole(fields['count'], [...path, 'count'], 1, MAX_ID);
    return { id, nodes: Array.from({ length: count }, (_, i) => this.#node(first + i, shared, path)) };
  }

  pins(value: unknown): Pin[] {
    return this.#entries.list(value ?? [], ['pins'], MAX_PINS).map((entry, i) => {
      const fields = this.#entries.fields(entry, ['pins', i], ['group', 'from', 'to']);
      for (const name of ['group', 'from', 'to']) this.#entries.whole(fields[name], ['pins', i, name], 0, 2 ** 24);
      return fields as unknown as Pin;
    });
  }

  factors(value: unknown): Topology['factors'] {
    if (value === undefined) return undefined;
    const fields = this.#entries.fields(value, ['factors'], Object.keys(value ?? {}));
    for (const [domain, factor] of Object.entries(fields)) this.#entries.whole(factor, ['factors', domain], 1, 2 ** 20);
    return fields as Topology['factors'];
  }
}

function groupBitsOf(entries: FileEntries, value: unknown): number {
  const groups = entries.whole(value ?? DEFAULT_GROUPS, ['groups'], 1, 65_536);
  const bits = Math.log2(groups);
  return Number.isInteger(bits) ? bits : entries.refuse(['groups'], `is ${groups}, not a power of two`);
}

/** What the file says of the whole. */
function settingsOf(entries: FileEntries, fields: Readonly<Record<string, unknown>>): Omit<Topology, 'subclusters'> {
  const domain = fields['domain'] ?? 'none';
  const label = domain === 'none' ? undefined : entries.oneOf(domain, ['domain'], DOMAIN_LABELS);
  return {
    algorithm: entries.oneOf(fields['algorithm'] ?? 'wrd', ['algorithm'], ALGORITHMS),
    version: 1,
    seed: entries.whole(fields['seed'] ?? 1, ['seed'], 0, 0xffff_ffff),
    copies: entries.whole(fields['copies'] ?? 3, ['copies'], 1, MAX_COPIES),
    ...(label === undefined ? {} : { domain: label }),
  };
}

/** As it would be published, and sound. @throws WebdfsError INVALID */
function soundTopology(name: string, make: () => Topology): Topology {
  try {
    return asTopology(make());
  } catch (error) {
    // of the placement room's own kind; what it says names the entry
    throw new WebdfsError('INVALID', `${name}: ${messageOf(error)}`);
  }
}

/**
 * Reads a topology file: YAML, of which JSON is a part.
 *
 * @param name  how the file is called in messages
 * @throws WebdfsError INVALID that names the entry and its line, TOO_LARGE
 */
export function parseTopologyFile(name: string, text: string): TopologyFile {
  if (text.length > MAX_BYTES) {
    throw new WebdfsError('TOO_LARGE', `${name} has ${text.length} bytes, the limit is ${MAX_BYTES}`);
  }
  const entries = new FileEntries(name, text);
  const { root } = entries;
  const reader = new TopologyReader(entries);
  if (typeof root === 'object' && root !== null && 'version' in root) {
    const topology = soundTopology(name, () => root as unknown as Topology);
    return { topology, groupBits: Math.log2(DEFAULT_GROUPS), storedBytes: undefined, capacities: reader.capacities };
  }
  const fields = entries.fields(root, [], TOP);
  const factors = reader.factors(fields['factors']);
  const pins = reader.pins(fields['pins']);
  const bare: Topology = {
    ...settingsOf(entries, fields),
    subclusters: entries
      .list(fields['subclusters'], ['subclusters'], MAX_ID)
      .map((entry, i) => reader.subcluster(entry, ['subclusters', i], i)),
    ...(pins.length === 0 ? {} : { pins }),
  };
  const groupBits = groupBitsOf(entries, fields['groups']);
  return {
    topology: soundTopology(name, () => (factors ? { ...bare, factors } : publishTopology(bare, { groupBits }))),
    groupBits,
    storedBytes: reader.bytes(fields['stored'], ['stored']),
    capacities: reader.capacities,
  };
}
