import type { RescaleHistory, TopologyReport } from '../reports.ts';
import type { S3Client } from '../s3-client.ts';

/** The shape of a running cluster, seen and changed from outside: `/-/topology` and `/-/rescales`. */

/** The topology, and what moves. */
export async function lookAtTopology(client: S3Client, signal?: AbortSignal): Promise<TopologyReport> {
  const asked = { method: 'GET', bucket: '-', key: 'topology' } as const;
  const { body } = await client.call(signal === undefined ? asked : { ...asked, signal });
  return JSON.parse(body) as TopologyReport;
}

/** What was done, the newest first. */
export async function lookAtHistory(client: S3Client): Promise<RescaleHistory> {
  const { body } = await client.call({ method: 'GET', bucket: '-', key: 'rescales' });
  return JSON.parse(body) as RescaleHistory;
}

/** @throws CONFLICT if the topology was changed since `revision` */
export async function tellTopology(client: S3Client, query: Record<string, string>): Promise<TopologyReport> {
  const { body } = await client.call({ method: 'POST', bucket: '-', key: 'topology', query });
  return JSON.parse(body) as TopologyReport;
}

/** No change is under way and every group is where it should be. */
export function isSettled({ target, groups, atGoal }: TopologyReport): boolean {
  return target === undefined && atGoal === groups;
}
