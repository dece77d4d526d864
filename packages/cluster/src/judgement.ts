import type { NodeId } from '@webdfs/base';

/** One node says of another that it does not answer. */
export interface Complaint {
  readonly from: NodeId;
  readonly about: NodeId;
  /** Dropping the other from a group would leave fewer than `minCopies` there: only the controller may judge. */
  readonly below: boolean;
}

/** Up to here the largest set is found exactly; beyond, by leaving out whoever is least heard. */
const MAX_EXACT = 16;

type Graph = ReadonlyMap<NodeId, ReadonlySet<NodeId>>;

function graphOf(complaints: readonly Complaint[]): Graph {
  const graph = new Map<NodeId, Set<NodeId>>();
  const add = (a: NodeId, b: NodeId): void => {
    const deaf = graph.get(a) ?? new Set();
    graph.set(a, deaf.add(b));
  };
  for (const { from, about } of complaints) {
    if (from === about) continue;
    add(from, about);
    add(about, from);
  }
  return graph;
}

function componentsOf(graph: Graph): NodeId[][] {
  const seen = new Set<NodeId>();
  const components: NodeId[][] = [];
  for (const start of graph.keys()) {
    if (seen.has(start)) continue;
    const component: NodeId[] = [];
    const stack = [start];
    seen.add(start);
    while (stack.length > 0) {
      const node = stack.pop()!;
      component.push(node);
      for (const other of graph.get(node)!) {
        if (seen.has(other)) continue;
        seen.add(other);
        stack.push(other);
      }
    }
    components.push(component);
  }
  return components;
}

/** Nodes in the order in which they are kept when sizes are equal: the least accused first, then the smaller id. */
function byTrust(nodes: readonly NodeId[], complaints: readonly Complaint[]): NodeId[] {
  const accusers = (node: NodeId): number =>
    new Set(complaints.filter(({ about }) => about === node).map(({ from }) => from)).size;
  return nodes.toSorted((a, b) => accusers(a) - accusers(b) || a - b);
}

/** The largest set of nodes that hear each other; of equal ones the first in the order given. */
function largestSet(ordered: readonly NodeId[], graph: Graph): readonly NodeId[] {
  let best: readonly NodeId[] = [];
  const grow = (chosen: readonly NodeId[], rest: readonly NodeId[]): void => {
    if (chosen.length + rest.length <= best.length) return;
    const [next, ...others] = rest;
    if (next === undefined) {
      best = chosen;
      return;
    }
    grow(
      [...chosen, next],
      others.filter((node) => !graph.get(next)!.has(node)),
    );
    grow(chosen, others);
  };
  grow([], ordered);
  return best;
}

/** Leaves out whoever is deaf to most until all left hear each other. */
function peeledSet(ordered: readonly NodeId[], graph: Graph): readonly NodeId[] {
  const left = [...ordered];
  for (;;) {
    const deafness = left.map((node) => left.filter((other) => graph.get(node)!.has(other)).length);
    const most = Math.max(0, ...deafness);
    if (most === 0) return left;
    left.splice(deafness.lastIndexOf(most), 1);
  }
}

/**
 * Who is to be marked when nodes complain about each other. A node is judged when two others complain about it, or one
 * for which dropping it would leave too few. Then, of all that are deaf to one another by way of it, the largest set that
 * hears each other is kept and the others go.
 */
export function judge(complaints: readonly Complaint[]): readonly NodeId[] {
  const isJudged = (node: NodeId): boolean => {
    const about = complaints.filter((complaint) => complaint.about === node);
    return about.some(({ below }) => below) || new Set(about.map(({ from }) => from)).size >= 2;
  };
  const graph = graphOf(complaints);
  return componentsOf(graph)
    .filter((component) => component.some(isJudged))
    .flatMap((component) => {
      const ordered = byTrust(component, complaints);
      const kept = component.length <= MAX_EXACT ? largestSet(ordered, graph) : peeledSet(ordered, graph);
      return component.filter((node) => !kept.includes(node));
    })
    .toSorted((a, b) => a - b);
}
