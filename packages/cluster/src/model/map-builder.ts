import { asGroupId, asNodeId, type GroupKey, type NodeId, type PolicyId, type Revision } from '@webdfs/base';
import { FIRST_POLICY } from '../create-cluster.ts';
import { formatDocument } from '../documents.ts';
import { KeySpace } from '../key-space.ts';
import { diskKey, downKey, groupKey, liveKey, MAP_KEY, sliceKey } from '../keys.ts';
import type { ClusterMap, DownInfo, FencedNode, GroupView, Policy } from '../map.ts';
import type { Transaction, Write } from '../map-store.ts';
import { MapSnapshot } from '../map-view.ts';

export interface MapOptions {
  readonly nodes: number;
  readonly copies?: number;
  readonly minCopies?: number;
  readonly era?: number;
  readonly live?: boolean;
  readonly groupBits?: number;
}

/** A map that a test writes step by step, each step one revision, without asking whether it is allowed. */
export class MapBuilder {
  readonly group: GroupKey = { policy: FIRST_POLICY, group: asGroupId(0) };
  readonly space = new KeySpace();
  snapshot = MapSnapshot.empty;

  constructor(options: MapOptions) {
    const { nodes, copies = 3, minCopies = 2, era = 0, live = true, groupBits = 2 } = options;
    const ids = Array.from({ length: nodes }, (_, i) => asNodeId(i + 1));
    const map: ClusterMap = {
      cluster: '00112233445566778899aabbccddeeff',
      name: 'built',
      era,
      groupBits,
      policies: [{ id: FIRST_POLICY, name: `replicas=${copies}`, copies, minCopies, minCopiesSince: 0 }],
      settled: {
        algorithm: 'wrd',
        version: 1,
        seed: 1,
        copies,
        subclusters: [{ id: 1, nodes: ids.map((id) => ({ id, weight: 65_536, labels: {} })) }],
      },
      out: [],
    };
    for (const id of ids) this.put(diskKey(id), formatDocument({ id: `disk ${id}`, founding: true }));
    for (let slice = 0; slice * 64 < 2 ** groupBits; slice++) this.put(sliceKey(FIRST_POLICY, slice), '{}');
    this.put(MAP_KEY, formatDocument(map));
    if (live) for (const id of ids) this.live(id);
  }

  /** The view of the group under test, with the policy it belongs to. */
  view(): GroupView & { readonly policy: PolicyId } {
    return { ...this.snapshot.group(this.group), policy: FIRST_POLICY };
  }

  write(writes: readonly Write[]): Revision {
    const change = this.space.apply(this.space.revision + 1, writes);
    this.snapshot = this.snapshot.next(change).snapshot;
    return change.revision;
  }

  put(key: string, value: string): Revision {
    return this.write([{ type: 'put', key, value }]);
  }

  transact({ compare, write }: Transaction): boolean {
    if (!compare.every((each) => this.space.holds(each))) return false;
    this.write(write);
    return true;
  }

  live(node: NodeId): Revision {
    return this.put(liveKey(node), formatDocument({ pid: 1, startedMs: 0 }));
  }

  dead(node: NodeId): Revision {
    return this.write([{ type: 'delete', key: liveKey(node) }]);
  }

  mark(nodes: NodeId | readonly NodeId[], info: Partial<DownInfo> = {}): Revision {
    const value = formatDocument({ reason: 'a test', session: 0, ...info });
    return this.write([nodes].flat().map((node): Write => ({ type: 'put', key: downKey(node as NodeId), value })));
  }

  newDisk(node: NodeId, { founding = false } = {}): Revision {
    return this.put(diskKey(node), formatDocument({ id: 'another', founding }));
  }

  override(override: {
    members: readonly NodeId[];
    eligible?: readonly NodeId[];
    from?: readonly FencedNode[];
  }): Revision {
    return this.put(groupKey(this.group), formatDocument({ eligible: [], from: [], ...override }));
  }

  policy(changed: Partial<Policy>): Revision {
    const { map } = this.snapshot;
    return this.put(MAP_KEY, formatDocument({ ...map, policies: [{ ...map.policies[0]!, ...changed }] }));
  }

  writeOff(node: NodeId): Revision {
    const { map } = this.snapshot;
    return this.put(MAP_KEY, formatDocument({ ...map, out: [...map.out, node] }));
  }
}

export function aMap(options: MapOptions): MapBuilder {
  return new MapBuilder(options);
}

/** In ascending order. */
export function members(nodes: readonly NodeId[]): NodeId[] {
  return nodes.toSorted((a, b) => a - b);
}
