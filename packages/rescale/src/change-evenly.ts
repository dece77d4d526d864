import {
  changeTopology,
  type ChangeOptions,
  compilePlacement,
  fairShares,
  type Topology,
  type TopologyChange,
} from '@webdfs/placement';
import { balanceIntake, type IntakeOptions } from './balance-intake.ts';

/**
 * The topology after some changes, as `changeTopology` makes it, with pins that even out what nodes take in on the way there.
 *
 * They are taken back by the next change that has no need of them, which moves a few groups more for it: over four changes of twenty
 * nodes up to 2.7 % more bytes in one of them, and 3 to 13 % less time where nodes leave.
 *
 * @throws as `changeTopology`
 */
export function changeEvenly(
  topology: Topology,
  changes: readonly TopologyChange[],
  options: ChangeOptions & IntakeOptions,
): Topology {
  const changed = changeTopology(topology, changes, options);
  const { groupBits } = options;
  // where every node has a copy of everything there is nothing to choose
  const nodes = [topology, changed].map((each) => fairShares(each).size);
  if (Math.min(...nodes) < Math.max(topology.copies, changed.copies)) return changed;
  const before = compilePlacement(topology, groupBits, topology.copies);
  const after = compilePlacement(changed, groupBits, changed.copies);
  const added = balanceIntake(before, after, options);
  if (added.length === 0) return changed;
  const pins = [...(changed.pins ?? []), ...added].sort((a, b) => a.group - b.group);
  return { ...changed, pins };
}
