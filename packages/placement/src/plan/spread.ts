import { domainOf } from '../domains.ts';
import type { PlacementTable } from '../placement-table.ts';
import type { DomainLabel, Topology } from '../topology.ts';

/** Outermost first. */
export const DOMAIN_LABELS: readonly DomainLabel[] = ['zone', 'rack', 'machine'];

/** How far apart the copies of the groups lie, by one kind of domain. */
export interface Spread {
  readonly label: DomainLabel;
  /** Domains of that kind with weight; a node without the label is one of its own. */
  readonly domains: number;
  /** Groups that lose two or more copies with one domain. */
  readonly shared: number;
  /** Copies of one group in one domain at most. */
  readonly most: number;
}

/** The kinds of domain that a topology knows of, outermost first. */
export function labelsOf(topology: Topology): DomainLabel[] {
  const nodes = topology.subclusters.flatMap((subcluster) => subcluster.nodes);
  return DOMAIN_LABELS.filter(
    (label) => topology.domain === label || nodes.some((node) => node.labels[label] !== undefined),
  );
}

export function spreadOf(table: PlacementTable, label: DomainLabel): Spread {
  const by: Topology = { ...table.topology, domain: label };
  const numbers = new Map<string, number>();
  const domainOfId = new Map<number, number>();
  const weighty = new Set<number>();
  for (const node of table.topology.subclusters.flatMap((subcluster) => subcluster.nodes)) {
    const domain = domainOf(by, node);
    const number = numbers.get(domain) ?? numbers.size;
    numbers.set(domain, number);
    domainOfId.set(node.id, number);
    if (node.weight > 0) weighty.add(number);
  }
  const rows = table.rows();
  let shared = 0;
  let most = 0;
  for (let group = 0; group < table.groupCount; group++) {
    const domains = Array.from(rows.subarray(group * table.count, (group + 1) * table.count), (id) =>
      domainOfId.get(id)!,
    );
    const held = domains.map((domain) => domains.filter((other) => other === domain).length);
    const crowd = Math.max(0, ...held);
    if (crowd > 1) shared += 1;
    most = Math.max(most, crowd);
  }
  return { label, domains: weighty.size, shared, most };
}
