import { buffer } from 'node:stream/consumers';
import { type Clock, codeOf, type SeededRandom, sleep } from '@webdfs/base';
import type { S3Client, StatusReport, WhereReport } from '@webdfs/webdfs';
import type { BlogTarget, Copy } from './target.ts';

export interface S3TargetOptions {
  readonly client: S3Client;
  readonly bucket: string;
  readonly clock: Clock;
  readonly random: SeededRandom;
  /** Ends the process of a node. */
  readonly kill: (node: number) => void;
  readonly signal: AbortSignal;
}

const LOOK_MS = 500;

/** A running cluster, through its door and its reports. */
export function s3Target({ client, bucket, clock, random, kill, signal }: S3TargetOptions): BlogTarget {
  const report = async <T>(key: string, query: Record<string, string> = {}): Promise<T> =>
    JSON.parse((await client.call({ method: 'GET', bucket: '-', key, query })).body) as T;
  const status = (): Promise<StatusReport> => report<StatusReport>('status');
  return {
    put: async (key, body) => void (await client.call({ method: 'PUT', bucket, key, body })),
    get: async (key) => {
      try {
        return await buffer(await client.get(bucket, key));
      } catch (error) {
        if (codeOf(error) === 'NOT_FOUND') return undefined;
        throw error;
      }
    },
    copies: async (key) => copiesIn(await report<WhereReport>('where', { bucket, key })),
    nodes: async () => (await status()).nodes.map(({ id }) => id),
    kill: async () => {
      const { nodes } = await status();
      const up = nodes.filter(({ state }) => state === 'up');
      const { id } = up[random.below(up.length)]!;
      kill(id);
      return id;
    },
    settled: async () => {
      for (;;) {
        const seen = await status().catch(() => undefined);
        const { total = 1, whole = 0, withoutPrimary = 1 } = seen?.groups ?? {};
        const allUp = seen?.nodes.every(({ state }) => state === 'up') === true;
        if (allUp && whole === total && withoutPrimary === 0) return;
        await sleep(clock, LOOK_MS, signal);
      }
    },
    bytesOnDisk: async () => (await status()).nodes.reduce((sum, node) => sum + (node.volumeBytes ?? 0), 0),
  };
}

function copiesIn({ places }: WhereReport): Copy[] {
  return places.flatMap(({ what, copies }) =>
    copies.flatMap(({ node, present, checksum }) =>
      present ? [{ node, good: checksum === 'good', isRecord: what === 'record' }] : [],
    ),
  );
}
