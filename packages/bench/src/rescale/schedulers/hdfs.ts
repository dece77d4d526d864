import type { NodeId, SeededRandom } from '@webdfs/base';
import type { Transfer } from '@webdfs/rescale';
import type { DataTransferScheduler, PlacedFile } from '../parts.ts';
import { planSeconds } from './plan-seconds.ts';

/** Whoever has the fewest transfers so far; among equals chance decides. */
function freest(holders: readonly NodeId[], counts: ReadonlyMap<NodeId, number>, random: SeededRandom): NodeId {
  const least = holders.reduce((most, node) => Math.min(most, counts.get(node) ?? 0), Infinity);
  const free = holders.filter((node) => (counts.get(node) ?? 0) === least);
  return free[random.below(free.length)]!;
}

/** Holders that may serve: the balancer moves a copy away from the node that gives it up; the name node takes any holder. */
function sourcesOf({ before, after }: PlacedFile, grows: boolean): readonly NodeId[] {
  const giving = before.filter((node) => !after.includes(node));
  return grows ? giving : before;
}

/**
 * The transfers of HDFS. When nodes join, its balancer moves each copy from a node that gives it up; when nodes leave, the name node has
 * each chunk copied by a holder that has a stream to spare, in random order. Nothing is passed on or read for two.
 */
export const HDFS: DataTransferScheduler = {
  name: 'HDFS-like',
  schedule({ files, membership, ratesOf, random }) {
    const grows = membership.after.length > membership.before.length;
    const counts = new Map<NodeId, number>();
    const copies = files.flatMap((file, parcel) =>
      file.after.filter((to) => !file.before.includes(to)).map((to) => ({ file, parcel, to, key: random.fraction() })),
    );
    copies.sort((a, b) => a.key - b.key);
    const transfers = copies.map(({ file, parcel, to, key }): Transfer => {
      const from = freest(sourcesOf(file, grows), counts, random);
      counts.set(from, (counts.get(from) ?? 0) + 1);
      return { parcel, bytes: file.bytes, from, to, depth: 0, key };
    });
    return { transfers, seconds: planSeconds(transfers, ratesOf) };
  },
};
