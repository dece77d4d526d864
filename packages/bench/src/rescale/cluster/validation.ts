import { asGroupId } from '@webdfs/base';
import { compilePlacement } from '@webdfs/placement';
import type { S3Client, StatusReport, TopologyReport } from '@webdfs/webdfs/remote';

/** Whether a cluster is as it should be: what the validator of the seven parts looks at. */
export interface Validation {
  readonly nodes: number;
  readonly bytes: number;
  /** What nodes hold beyond that, by that: copies of groups that they have left, which are kept for a while. */
  readonly leftovers: number;
  /** Bytes that came to nodes in vain since they started. */
  readonly wastedBytes: number;
  /** The fullest node by what its weight has it hold. */
  readonly fullest: number;
  /** In words; empty if nothing is wrong. */
  readonly faults: readonly string[];
}

async function ask<Report>(client: S3Client, key: string, query: Record<string, string> = {}): Promise<Report> {
  return JSON.parse((await client.call({ method: 'GET', bucket: '-', key, query })).body) as Report;
}

/** Looks at the load of each node and the copies of each group, as the placement has them and the primaries count them. */
export async function validate(client: S3Client): Promise<Validation> {
  const topology = await ask<TopologyReport>(client, 'topology', { sizes: 'yes' });
  const status = await ask<StatusReport>(client, 'status');
  const { settled, groupBits, copies, groupBytes = [] } = topology;
  const table = compilePlacement(settled, groupBits, copies);
  const loads = new Map<number, number>();
  for (let group = 0; group < table.groupCount; group++) {
    for (const node of table.members(asGroupId(group))) {
      loads.set(node, (loads.get(node) ?? 0) + (groupBytes[group] ?? 0));
    }
  }
  const weights = settled.subclusters.flatMap(({ nodes }) => nodes).filter(({ weight }) => weight > 0);
  const weight = weights.reduce((sum, node) => sum + node.weight, 0);
  const bytes = [...loads.values()].reduce((sum, load) => sum + load, 0);
  const shares = weights.map((node) =>
    bytes === 0 ? 1 : (loads.get(node.id) ?? 0) / ((bytes * node.weight) / weight),
  );
  const { whole, total, lost, readsOnly, waiting, degraded } = status.groups;
  const held = status.nodes.reduce((sum, node) => sum + (node.bytes ?? 0), 0);
  const down = status.nodes.filter(({ state }) => state === 'down').map(({ id }) => id);
  return {
    nodes: weights.length,
    bytes,
    leftovers: bytes === 0 ? 0 : Math.max(0, held / bytes - 1),
    wastedBytes: status.nodes.reduce((sum, { moved }) => sum + (moved?.wastedBytes ?? 0), 0),
    fullest: Math.max(...shares),
    faults: [
      ...(topology.atGoal === topology.groups
        ? []
        : [`${topology.groups - topology.atGoal} groups are not where they should be`]),
      ...(whole === total ? [] : [`${degraded + readsOnly + waiting + lost} groups lack copies`]),
      ...(down.length === 0 ? [] : [`nodes ${down.join(', ')} are down`]),
    ],
  };
}
