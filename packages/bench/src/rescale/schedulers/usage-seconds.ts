import type { NodeId } from '@webdfs/base';
import { paceOf, type RatesOf, type Transfer, type Usage } from '@webdfs/rescale';

/** How long the busiest node is busy if each transfer is read, sent, received and written by itself. */
export function usageSeconds(transfers: readonly Transfer[], ratesOf: RatesOf): number {
  const usages = new Map<NodeId, { -readonly [Key in keyof Usage]: number }>();
  const of = (node: NodeId): { -readonly [Key in keyof Usage]: number } => {
    const known = usages.get(node);
    if (known !== undefined) return known;
    const usage = { receive: 0, send: 0, read: 0, write: 0 };
    usages.set(node, usage);
    return usage;
  };
  for (const { from, to, bytes } of transfers) {
    const [source, target] = [of(from), of(to)];
    source.read += bytes;
    source.send += bytes;
    target.receive += bytes;
    target.write += bytes;
  }
  return Array.from(usages, ([node, usage]) => paceOf(node, usage, ratesOf(node)).seconds).reduce(
    (most, seconds) => Math.max(most, seconds),
    0,
  );
}
