import type { GroupId, NodeId } from '@webdfs/base';
import { compilePlacement, type Topology } from '@webdfs/placement';
import type { ClusterMap } from './map.ts';

/** Where the groups of one `map` key lie and where they should be, computed as it is asked for and kept. */
export interface Placements {
  /** By the settled topology, the nodes written off included. */
  placed(group: GroupId, copies: number): readonly NodeId[];
  /** By the target, else the settled topology, without the nodes written off. */
  goal(group: GroupId, copies: number): readonly NodeId[];
}

type Table = { members(group: GroupId): readonly NodeId[] };
type Compile = (topology: Topology, groupBits: number, copies: number) => Table;

/** As many nodes as there are, where there are fewer than copies: the group is degraded, not an error. */
const compileAll: Compile = (topology, groupBits, copies) =>
  compilePlacement(topology, groupBits, copies, { shortfall: 'fewer' });

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

function tables(topology: Topology, groupBits: number, compile: Compile): (copies: number) => Table {
  const byCopies = new Map<number, Table>();
  return (copies) => {
    let table = byCopies.get(copies);
    if (table === undefined) {
      table = compile(topology, groupBits, copies);
      byCopies.set(copies, table);
    }
    return table;
  };
}

/** The ids in a topology that can be given groups. */
export function placeable(topology: Topology): NodeId[] {
  return topology.subclusters.flatMap(({ nodes }) => nodes.filter(({ weight }) => weight > 0).map(({ id }) => id));
}

export function placementsOf(map: ClusterMap, compile: Compile = compileAll): Placements {
  const settled = tables(map.settled, map.groupBits, compile);
  const sameGoal = map.target === undefined && map.out.length === 0;
  const goal = sameGoal ? settled : tables(without(map.target ?? map.settled, map.out), map.groupBits, compile);
  return {
    placed: (group, copies) => settled(copies).members(group),
    goal: (group, copies) => goal(copies).members(group),
  };
}
