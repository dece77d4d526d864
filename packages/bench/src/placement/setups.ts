import { asNodeId, type NodeId } from '@webdfs/base';
import type { TopologyNode } from '@webdfs/placement';
import type { Task } from './contestant.ts';
import {
  dropNode,
  dropSubcluster,
  growSubcluster,
  nodesOf,
  scaleNode,
  scaleSubcluster,
  subcluster,
  type Subclusters,
  subclustersOf,
} from './layout.ts';

/** A change of a cluster, before and after. */
export interface Change {
  /** A kebab-case word, unique in its set-up. */
  readonly id: string;
  readonly title: string;
  readonly before: Subclusters;
  readonly after: Subclusters;
  /** A node is lost: nothing is published anew for it. */
  readonly unplanned?: boolean;
}

/** A cluster, what happens to it, and how many groups show it. */
export interface Setup extends Omit<Task, 'seed'> {
  readonly id: string;
  readonly title: string;
  readonly prose: readonly string[];
  readonly changes: readonly Change[];
  /** Nodes whose failure is looked at, one at a time. */
  readonly failing: readonly NodeId[];
}

/** The set-up of 2009: 15 disks, three sub-clusters of weights 1, 2 and 4, three copies of 10 000 objects. */
export function foundingSetup(groupCount: number): Setup {
  const base = subclustersOf([1, 2, 4], 5);
  const drained = scaleSubcluster(base, 1, 0);
  const add = (weight: number): Subclusters => [...base, subcluster(4, { first: 16, count: 5, weight })];
  const to = (id: string, title: string, after: Subclusters): Change => ({ id, title, before: base, after });
  return {
    id: 'founding',
    title: 'The founding set-up',
    prose: [
      'Three sub-clusters of five nodes with weights 1, 2 and 4, three copies. Nodes fail alone here: nothing is asked about racks.',
    ],
    subclusters: base,
    copies: 3,
    groupCount,
    failing: [1, 7, 15].map(asNodeId),
    changes: [
      to('add-8', 'add 5 nodes of weight 8', add(8)),
      to('add-4', 'add 5 nodes of weight 4', add(4)),
      to('drain', 'first sub-cluster to weight 0', drained),
      { id: 'drop-drained', title: '… then drop it', before: drained, after: dropSubcluster(base, 1) },
      to('drop', 'drop the first sub-cluster at once', dropSubcluster(base, 1)),
      to('reweight', 'second sub-cluster from 2 to 4', scaleSubcluster(base, 2, 2)),
      to('reweight-last', 'last sub-cluster from 4 to 5', scaleSubcluster(base, 3, 5 / 4)),
      { ...to('remove-1', 'remove node 1', dropNode(base, asNodeId(1))), unplanned: true },
      { ...to('remove-15', 'remove node 15', dropNode(base, asNodeId(15))), unplanned: true },
      to('drain-7', 'node 7 to weight 0', scaleNode(base, asNodeId(7), 0)),
      to('add-16', 'add node 16 to the last sub-cluster', growSubcluster(base, 3, asNodeId(16))),
    ],
  };
}

/** Twelve racks of eight nodes: the four oldest of weight 1, then four of 2 and four of 4. */
export function rackSetup(groupCount: number): Setup {
  const base = subclustersOf([1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4], 8);
  const to = (id: string, title: string, after: Subclusters): Change => ({ id, title, before: base, after });
  return {
    id: 'racks',
    title: 'Racks',
    prose: [
      'Twelve racks of eight nodes, each rack a sub-cluster: the four oldest of weight 1, four of weight 2, four of weight 4; three copies that shall lie in ' +
        'different racks. Algorithms without a rule for racks are measured, too: how often two copies share one says why there is a rule.',
    ],
    subclusters: base,
    copies: 3,
    domain: 'rack',
    groupCount,
    failing: [],
    changes: [
      to('add-rack', 'add a rack of weight 4', [...base, subcluster(13, { first: 97, count: 8, weight: 4 })]),
      to('drain-rack', 'drain the oldest rack', scaleSubcluster(base, 1, 0)),
      { ...to('remove-node', 'remove one node', dropNode(base, asNodeId(1))), unplanned: true },
      to('double-rack', 'double the second rack', scaleSubcluster(base, 2, 2)),
    ],
  };
}

/** As many nodes of twice the weight: in a rack of their own where the given ones share one, else beside them. */
function successorsOf(nodes: readonly TopologyNode[], first: NodeId, domain: Setup['domain']): TopologyNode[] {
  const places = new Set(nodes.map((node) => (domain === undefined ? undefined : node.labels[domain])));
  const [place] = places;
  const own = domain !== undefined && place !== undefined && places.size === 1 ? { [domain]: `next to ${place}` } : {};
  return nodes.map((node, i) => ({
    id: asNodeId(first + i),
    weight: node.weight * 2,
    labels: { ...node.labels, ...own },
  }));
}

/** The changes of 2009, for any cluster: what they touch is its oldest, its middle and its newest sub-cluster with weight. */
export function setupOf(cluster: Omit<Task, 'seed'> & { name: string }): Setup {
  const { name, ...task } = cluster;
  const base = task.subclusters;
  const live = base
    .map(({ id, nodes }) => ({ id, nodes: nodes.filter((node) => node.weight > 0) }))
    .filter(({ nodes }) => nodes.length > 0);
  const oldest = live[0]!;
  const middle = live[Math.floor(live.length / 2)]!;
  const newest = live.at(-1)!;
  const ids = nodesOf(base).map((node): number => node.id);
  const next = asNodeId(Math.max(...ids) + 1);
  const nextSubcluster = Math.max(...base.map(({ id }) => id)) + 1;
  const twice = successorsOf(newest.nodes, next, task.domain);
  const to = (id: string, title: string, after: Subclusters): Change => ({ id, title, before: base, after });
  const several = live.length > 1;
  const [first, last] = [oldest.nodes[0]!.id, newest.nodes.at(-1)!.id];
  return {
    ...task,
    id: 'topology',
    title: name,
    prose: [`${ids.length} nodes in ${base.length} sub-clusters, ${task.copies} copies.`],
    failing: [...new Set([first, middle.nodes[0]!.id, last])],
    changes: [
      to('add', `add ${twice.length} nodes like the newest, of twice the weight`, [
        ...base,
        { id: nextSubcluster, nodes: twice },
      ]),
      ...(several ? [to('drain', `sub-cluster ${oldest.id} to weight 0`, scaleSubcluster(base, oldest.id, 0))] : []),
      to('reweight', `sub-cluster ${middle.id} to twice its weight`, scaleSubcluster(base, middle.id, 2)),
      { ...to('remove-first', `remove node ${first}`, dropNode(base, first)), unplanned: true },
      { ...to('remove-last', `remove node ${last}`, dropNode(base, last)), unplanned: true },
      to('grow', `add node ${next} to sub-cluster ${newest.id}`, growSubcluster(base, newest.id, next)),
    ],
  };
}
