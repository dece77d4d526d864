import { asGroupId } from '@webdfs/base';
import {
  type AlgorithmName,
  balancePins,
  changeTopology,
  compilePlacement,
  leastMoves,
  type PlacementTable,
  publishTopology,
  type Topology,
  UNIT_WEIGHT,
} from '@webdfs/placement';
import { balanceIntake } from '@webdfs/rescale';
import type { DataDistributionGenerator } from '../parts.ts';
import { membershipOf, type Scenario } from '../scenario.ts';

/** A real placement before and after a sub-cluster joins or leaves; groups are its files. */
export interface PlacedChange {
  readonly distribution: DataDistributionGenerator;
  /** Copies that any placement in proportion to weight must move. */
  readonly leastCopies: number;
  /** Groups placed by hand, before and after. */
  readonly pins: readonly [before: number, after: number];
}

export interface PlacedOptions {
  readonly algorithm: AlgorithmName;
  readonly groupBits: number;
  readonly seed: number;
  /** Whether pins even out what hashing leaves uneven. */
  readonly pinned: boolean;
}

function topologyOf({ nodes, change, copies }: Scenario, { algorithm, seed }: PlacedOptions): Topology {
  const { before } = membershipOf({ nodes, change, copies, bytesPerNode: 0 });
  const all = before.map((id) => ({ id, weight: UNIT_WEIGHT, labels: {} }));
  const staying = change < 0 ? nodes + change : nodes;
  const subclusters = [{ id: 1, nodes: all.slice(0, staying) }];
  if (change < 0) subclusters.push({ id: 2, nodes: all.slice(staying) });
  return { algorithm, version: 1, seed, copies, subclusters };
}

function balanced(topology: Topology, { groupBits, pinned }: PlacedOptions): Topology {
  if (!pinned) return topology;
  return { ...topology, pins: balancePins(topology, { groupBits }).pins };
}

/** Pins, too, against what makes one node take in more than others. */
function evenlyTaken(before: PlacementTable, after: Topology, { groupBits, pinned }: PlacedOptions): Topology {
  if (!pinned) return after;
  const pins = balanceIntake(before, compilePlacement(after, groupBits, after.copies));
  return { ...after, pins: [...(after.pins ?? []), ...pins] };
}

export function placedChange(scenario: Scenario, options: PlacedOptions): PlacedChange {
  const { groupBits } = options;
  const { change, copies } = scenario;
  const before = balanced(publishTopology(topologyOf(scenario, options), { groupBits }), options);
  const changed = changeTopology(
    before,
    change > 0
      ? [{ type: 'add-subcluster', count: change, weight: UNIT_WEIGHT, labels: {} }]
      : [{ type: 'remove', nodes: { by: 'subcluster', id: 2 } }],
    { groupBits },
  );
  const old = compilePlacement(before, groupBits, copies);
  const after = evenlyTaken(old, balanced(changed, options), options);
  const next = compilePlacement(after, groupBits, copies, { previous: old });
  return {
    distribution: distributionOf(options.algorithm, old, next),
    leastCopies: leastMoves(before, after, old.groupCount),
    pins: [before.pins?.length ?? 0, after.pins?.length ?? 0],
  };
}

function distributionOf(name: string, before: PlacementTable, after: PlacementTable): DataDistributionGenerator {
  return {
    name,
    distribute: (sizes) =>
      sizes.map((bytes, group) => ({
        bytes,
        before: before.members(asGroupId(group)),
        after: after.members(asGroupId(group)),
      })),
  };
}
