import type { NodeId } from '@webdfs/base';
import type { NodeStatus } from '@webdfs/replica';

/**
 * Bytes of one copy of a group, on average: what the nodes that answer hold, by the copies that are theirs. What they still
 * keep of groups that they have left does not count.
 *
 * @returns undefined if no node answers that holds a copy
 */
export function groupBytes(
  held: ReadonlyMap<NodeId, number>,
  statuses: ReadonlyMap<NodeId, NodeStatus>,
): number | undefined {
  let bytes = 0;
  let copies = 0;
  for (const [node, { liveBytes, objects, blocks, counters }] of statuses) {
    const entries = objects + blocks;
    const left = counters['leftEntries'] ?? 0;
    bytes += liveBytes * (entries === 0 ? 1 : Math.max(0, entries - left) / entries);
    copies += held.get(node) ?? 0;
  }
  return copies === 0 ? undefined : bytes / copies;
}
