import { utf8 } from '@webdfs/base';
import { parseKey } from './keys.ts';
import type { MapContents } from './map-store.ts';

/** Keys of one kind, and the bytes of keys and values. */
export interface KindUsage {
  readonly keys: number;
  readonly bytes: number;
}

/** What a map store holds, by what makes it grow. */
export interface MapUsage {
  readonly keys: number;
  readonly bytes: number;
  /** The document `map`: the topology, some 100 bytes a node. */
  readonly map: KindUsage;
  /** `node`, `disk`, `live` and `down` of all nodes. */
  readonly nodes: KindUsage;
  /** Overrides: one for each group that is degraded, moving, or not yet swept. */
  readonly groups: KindUsage;
  /** One key for 64 groups. */
  readonly slices: KindUsage;
  readonly others: KindUsage;
  readonly bytesPerNode: number;
  /** 0 while no group has an override. */
  readonly bytesPerGroup: number;
}

type Kind = 'map' | 'nodes' | 'groups' | 'slices' | 'others';

const KINDS: Readonly<Record<NonNullable<ReturnType<typeof parseKey>>['type'], Kind>> = {
  map: 'map',
  controller: 'others',
  node: 'nodes',
  disk: 'nodes',
  live: 'nodes',
  down: 'nodes',
  group: 'groups',
  slice: 'slices',
};

/** @param prefixBytes what the store puts before each key */
export function usageOf({ entries }: MapContents, prefixBytes = 0): MapUsage {
  const kinds: Record<Kind, { keys: number; bytes: number }> = {
    map: { keys: 0, bytes: 0 },
    nodes: { keys: 0, bytes: 0 },
    groups: { keys: 0, bytes: 0 },
    slices: { keys: 0, bytes: 0 },
    others: { keys: 0, bytes: 0 },
  };
  const nodes = new Set<number>();
  let bytes = 0;
  for (const { key, value } of entries) {
    const parsed = parseKey(key);
    const size = prefixBytes + utf8(key).length + utf8(value).length;
    const kind = kinds[parsed === undefined ? 'others' : KINDS[parsed.type]];
    kind.keys++;
    kind.bytes += size;
    bytes += size;
    if (parsed !== undefined && 'node' in parsed) nodes.add(parsed.node);
  }
  const each = (kind: KindUsage, count: number): number => (count === 0 ? 0 : Math.round(kind.bytes / count));
  return {
    keys: entries.length,
    bytes,
    ...kinds,
    bytesPerNode: each(kinds.nodes, nodes.size),
    bytesPerGroup: each(kinds.groups, kinds.groups.keys),
  };
}
