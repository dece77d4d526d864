import type { ClusterAccess } from '../cluster-access.ts';
import { groupSizes } from '../group-sizes.ts';
import { nodeStatuses } from '../node-statuses.ts';
import type { Sight } from './account.ts';

/** Looks at the cluster as the map has it now. */
export async function sightOf(
  access: Pick<ClusterAccess, 'map' | 'link' | 'clock'>,
  nowMs = access.clock.now(),
): Promise<Sight> {
  const { view } = access.map;
  const [statuses, sizes] = await Promise.all([nodeStatuses(access), groupSizes(access)]);
  return { view, statuses, sizes, nowMs };
}
