import type { ClusterAccess } from './cluster-access.ts';
import type { TopologyReport } from './reports.ts';

/** The topology as this node's map has it now: what plans are made from. */
export function topologyReport({ map, policy }: ClusterAccess): TopologyReport {
  const { view } = map;
  const { name, groupBits, settled, target, out } = view.map;
  return {
    name,
    epoch: view.revision,
    groupBits,
    copies: view.policy(policy).copies,
    settled,
    ...(target === undefined ? {} : { target }),
    out,
  };
}
