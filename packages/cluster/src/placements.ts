import type { GroupId, NodeId } from '@webdfs/base';
import { compilePlacement, type PlacementTable, type Topology } from '@webdfs/placement';
import type { ClusterMap } from './map.ts';
import { withOurErrors } from './placement-errors.ts';

/** Where the groups of one `map` key lie and where they should be, computed as it is asked for and kept. */
export interface Placements {
  /** By the settled topology, the nodes written off included. */
  placed(group: GroupId, copies: number): readonly NodeId[];
  /** By the target, else the settled topology, without the nodes written off. */
  goal(group: GroupId, copies: number): readonly NodeId[];
  /** What the placements of the next map are made from. */
  readonly tables: { readonly settled: Tables; readonly goal: Tables };
}

/** The tables of one topology, one for each number of copies that was asked for. */
interface Tables {
  /** The topology and number of groups, to be compared. */
  readonly text: string;
  readonly made: ReadonlyMap<number, PlacementTable>;
  members(group: GroupId, copies: number): readonly NodeId[];
}

/** A topology without some of its nodes. The weights and factors of the others stay as they are. */
export function without(topology: Topology, out: readonly NodeId[]): Topology {
  if (out.length === 0) return topology;
  return {
    ...topology,
    subclusters: topology.subclusters.map((subcluster) => ({
      ...subcluster,
      nodes: subcluster.nodes.filter((node) => !out.includes(node.id)),
    })),
    ...(topology.pins === undefined
      ? {}
      : { pins: topology.pins.filter((pin) => !out.includes(pin.from) && !out.includes(pin.to)) }),
  };
}

/** As many nodes as there are, where there are fewer than copies: the group is degraded, not an error. */
function tablesOf(topology: Topology, groupBits: number, earlier: readonly Tables[]): Tables {
  const text = JSON.stringify([groupBits, topology]);
  const same = earlier.find((tables) => tables.text === text);
  if (same !== undefined) return same;
  // the last is the nearest; its tables are let go of one by one as they are made use of
  const previous = new Map(earlier.at(-1)?.made);
  const made = new Map<number, PlacementTable>();
  return {
    text,
    made,
    members(group, copies) {
      let table = made.get(copies);
      if (table === undefined) {
        const before = previous.get(copies);
        previous.delete(copies);
        table = compilePlacement(topology, groupBits, copies, {
          shortfall: 'fewer',
          ...(before === undefined ? {} : { previous: before }),
        });
        made.set(copies, table);
      }
      return table.members(group);
    },
  };
}

/** The ids in a topology that can be given groups. */
export function placeable(topology: Topology): NodeId[] {
  return topology.subclusters.flatMap(({ nodes }) => nodes.filter(({ weight }) => weight > 0).map(({ id }) => id));
}

/** @param previous  those of an earlier map: what did not change since is not computed again */
export function placementsOf(map: ClusterMap, previous?: Placements): Placements {
  // a target becomes the settled topology, a write-off changes the goal: the earlier goal is the nearest to both
  const earlier = previous === undefined ? [] : [previous.tables.settled, previous.tables.goal];
  const settled = tablesOf(map.settled, map.groupBits, earlier);
  const sameGoal = map.target === undefined && map.out.length === 0;
  const goal = sameGoal ? settled : tablesOf(without(map.target ?? map.settled, map.out), map.groupBits, earlier);
  return {
    placed: (group, copies) => withOurErrors(() => settled.members(group, copies)),
    goal: (group, copies) => withOurErrors(() => goal.members(group, copies)),
    tables: { settled, goal },
  };
}
