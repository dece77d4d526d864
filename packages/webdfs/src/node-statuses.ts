import type { NodeId } from '@webdfs/base';
import { decodeStatusAnswer, encodeStatusRequest, type NodeStatus, VERB } from '@webdfs/replica';
import type { ClusterAccess } from './cluster-access.ts';

const STATUS_MS = 2_000;

async function askNode({ link }: Pick<ClusterAccess, 'link'>, node: NodeId): Promise<NodeStatus | undefined> {
  try {
    return decodeStatusAnswer(await link(node).call(VERB.STATUS, encodeStatusRequest(), { deadlineMs: STATUS_MS }));
  } catch {
    // a node that does not answer is shown as down: that is what a status is for
    return undefined;
  }
}

/** What the nodes of the cluster say of themselves, those that answer. */
export async function nodeStatuses(
  access: Pick<ClusterAccess, 'link' | 'map'>,
): Promise<ReadonlyMap<NodeId, NodeStatus>> {
  const nodes = access.map.view.nodes();
  const answers = await Promise.all(nodes.map((node) => askNode(access, node)));
  return new Map(
    nodes.flatMap((node, i) => {
      const status = answers[i];
      return status === undefined ? [] : [[node, status] as const];
    }),
  );
}
