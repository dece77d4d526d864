import { type NodeId, type SeededRandom, toHex } from '@webdfs/base';
import type { Groups } from '@webdfs/client';
import { downKey, formatDocument, groupKey, type Write } from '@webdfs/cluster';
import type { ReadAnswer, ReadRequest, WriteAnswer, WriteRequest } from '@webdfs/replica';
import type { RunOptions } from './run.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';

/** Ways to break a cluster on purpose, each a bug that a store may have: the simulator must see every one. */
export type Mutant = Pick<RunOptions, 'faults' | 'wrapGroups' | 'fate' | 'sabotage'>;

/** Groups with some of their answers changed. */
function changed(
  groups: Groups,
  how: {
    readonly write?: (request: WriteRequest) => Promise<WriteAnswer>;
    readonly read?: (request: ReadRequest) => Promise<ReadAnswer | undefined>;
  },
): Groups {
  return {
    groupOf: (policy, hashHigh) => groups.groupOf(policy, hashHigh),
    write: how.write ?? ((request) => groups.write(request)),
    read: how.read ?? ((request) => groups.read(request)),
    list: (request) => groups.list(request),
    putBlock: (policy, id, header, signal) => groups.putBlock(policy, id, header, signal),
    readBlock: (policy, id, range) => groups.readBlock(policy, id, range),
  };
}

function dropsAcknowledgedWrites(groups: Groups, random: SeededRandom): Groups {
  let last: WriteAnswer | undefined;
  const write = async (request: WriteRequest): Promise<WriteAnswer> => {
    if (last !== undefined && random.below(20) === 0) return last;
    return (last = await groups.write(request));
  };
  return changed(groups, { write });
}

function servesStaleReads(groups: Groups, random: SeededRandom): Groups {
  const earlier = new Map<string, ReadAnswer | undefined>();
  const read = async (request: ReadRequest): Promise<ReadAnswer | undefined> => {
    const name = toHex(request.key);
    if (request.entry && earlier.has(name) && random.below(20) === 0) return earlier.get(name);
    const answer = await groups.read(request);
    if (request.entry) earlier.set(name, answer);
    return answer;
  };
  return changed(groups, { read });
}

function losesCompareAndSwap(groups: Groups, random: SeededRandom): Groups {
  const write = (request: WriteRequest): Promise<WriteAnswer> =>
    groups.write(random.below(4) === 0 ? { ...request, conditions: {} } : request);
  return changed(groups, { write });
}

/** When a node that had left is back, it is a member again at once, and the first, whatever it missed. */
function promotesStaleMembers(cluster: SimulatedCluster): void {
  const left = new Set<NodeId>();
  const promote = (node: NodeId): void => {
    left.delete(node);
    const write: Write[] = [{ type: 'delete', key: downKey(node) }];
    for (const group of cluster.groups()) {
      const { inSync } = cluster.view.group(group);
      if (inSync.includes(node)) continue;
      const value = formatDocument({ members: [node, ...inSync], eligible: [], from: [] });
      write.push({ type: 'put', key: groupKey(group), value });
    }
    void cluster.mapStore.transact({ compare: [], write });
  };
  cluster.onMapChange((view) => {
    for (const node of view.marked()) {
      if (view.live(node) === undefined) left.add(node);
      else if (left.has(node)) promote(node);
    }
  });
}

export const MUTANTS = {
  'drops an acknowledged write': { wrapGroups: dropsAcknowledgedWrites, faults: [] },
  'serves a stale read': { wrapGroups: servesStaleReads, faults: [] },
  'loses a compare-and-swap': { wrapGroups: losesCompareAndSwap, faults: [] },
  'forgets a sync': {
    faults: ['blackout'],
    fate: ({ action }, random) => (action === 'datasync' && random.below(2) === 0 ? 'lie' : undefined),
  },
  'promotes a stale member': { faults: ['power', 'isolate'], sabotage: promotesStaleMembers },
} as const satisfies Record<string, Mutant>;

export function isSeamMutant(name: string): name is keyof typeof MUTANTS {
  return name in MUTANTS;
}
