import { asNodeId } from '@webdfs/base';
import { calibrate, compilePlacement, type Topology, UNIT_WEIGHT } from '@webdfs/placement';
import type { Check } from '../../report/check.ts';
import { type Subclusters, subclustersOf } from '../layout.ts';
import { none } from './claim.ts';

const GROUP_BITS = 12;
const MOST_COPIES = 6;

function topologyOf(algorithm: Topology['algorithm'], subclusters: Subclusters, copies: number): Topology {
  return { algorithm, version: 1, seed: 1, copies, subclusters };
}

function listsOf(topology: Topology, count: number): (readonly number[])[] {
  const table = compilePlacement(topology, GROUP_BITS, count);
  return Array.from({ length: table.groupCount }, (_, group) =>
    table.members(group as Parameters<typeof table.members>[0]),
  );
}

/** Lists whose next copy does more than join them. @param ordered  the next list must begin with them */
function nestingBreaks(algorithm: Topology['algorithm'], ordered: boolean): number {
  // six nodes in each, so that every algorithm takes six copies
  const topology = topologyOf(algorithm, subclustersOf([1, 2, 4], MOST_COPIES), MOST_COPIES);
  const lists = Array.from({ length: MOST_COPIES }, (_, i) => listsOf(topology, i + 1));
  let breaks = 0;
  for (let count = 1; count < MOST_COPIES; count++) {
    for (const [group, fewer] of lists[count - 1]!.entries()) {
      const more = lists[count]![group]!;
      if (!fewer.every((node, i) => (ordered ? more[i] === node : more.includes(node)))) breaks++;
    }
  }
  return breaks;
}

function loneNode(subclusterId: number, nodeId: number): Subclusters[number] {
  return { id: subclusterId, nodes: [{ id: asNodeId(nodeId), weight: UNIT_WEIGHT, labels: {} }] };
}

/** P14, P15 and P17: what lists look like. */
export function listClaims(): Check[] {
  const twoRacks = calibrate({ ...topologyOf('wrd', subclustersOf([1, 1], 4), 3), domain: 'rack' });
  const lopsided = listsOf(twoRacks, 3).filter((list) => [0, 3].includes(list.filter((node) => node <= 4).length));
  const narrow = topologyOf('rush-p', [...subclustersOf([1], 5), loneNode(2, 6), loneNode(3, 7)], 4);
  const doubled = listsOf(narrow, 4).filter((list) => new Set(list).size < 4);
  return [
    none('P14 wrd: two racks, three copies, but not 2 + 1', [lopsided.length], 'groups'),
    ...(['wrd', 'rendezvous', 'rush-p', 'rush-t'] as const).map((name) =>
      none(`P15 ${name}: lists that the next does not begin with, 1 to 6 copies`, [nestingBreaks(name, true)], 'lists'),
    ),
    none('P15 rush-r: lists that are not within the next, 1 to 6 copies', [nestingBreaks('rush-r', false)], 'lists'),
    none('P17 rush-p: sub-clusters of 5, 1 and 1 nodes, two copies on one', [doubled.length], 'groups'),
  ];
}
