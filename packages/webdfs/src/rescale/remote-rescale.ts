import { type Clock, WebdfsError } from '@webdfs/base';
import type { RescaleHistory, TopologyReport } from '../reports.ts';
import type { S3Client } from '../s3-client.ts';

/** The shape of a running cluster, seen and changed from outside: `/-/topology` and `/-/rescales`. */

/** The topology, and what moves. */
export async function lookAtTopology(client: S3Client, signal?: AbortSignal): Promise<TopologyReport> {
  const asked = { method: 'GET', bucket: '-', key: 'topology' } as const;
  const { body } = await client.call(signal === undefined ? asked : { ...asked, signal });
  return JSON.parse(body) as TopologyReport;
}

/** A cluster of which nobody answers for so long is gone, or cut off from here. */
const SILENCE_MS = 60_000;

/** Looks at the topology again and again, while nodes come and go: whoever was asked may have gone, and another answers next time. */
export class TopologyWatch {
  readonly #client: S3Client;
  readonly #clock: Clock;
  #heardAt: number;

  constructor(client: S3Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
  }

  /** Undefined when nobody answers just now. @throws what the look failed with, when nobody has answered for a minute */
  async look(signal: AbortSignal): Promise<TopologyReport | undefined> {
    try {
      const report = await lookAtTopology(this.#client, signal);
      this.#heardAt = this.#clock.monotonic();
      return report;
    } catch (error) {
      const isBrief = this.#clock.monotonic() < this.#heardAt + SILENCE_MS;
      if (isBrief && error instanceof WebdfsError && error.remedy === 'retry') return undefined;
      throw error;
    }
  }
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
