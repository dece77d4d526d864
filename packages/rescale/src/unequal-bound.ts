import type { Bound, Resource } from './bounds.ts';
import { type Rates, secondsFor } from './rates.ts';

/** One node of many that differ, bytes before and after. */
export interface NodeShare {
  readonly before: number;
  readonly after: number;
  readonly rates: Rates;
}

/**
 * The least time to bring unequal nodes to their shares, whatever the placement: each takes in what it lacks, and those that have
 * something read and send it at least once for every `copies` copies that are made. For equal nodes with uniform placement
 * `commissionBound` and `decommissionBound` say more.
 */
export function unequalBound(nodes: readonly NodeShare[], copies: number): Bound {
  const lacks = nodes.map(({ before, after }) => Math.max(0, after - before));
  const moved = lacks.reduce((sum, bytes) => sum + bytes, 0);
  const receivers = lacks.filter((bytes) => bytes > 0).length;
  const once = receivers === 0 ? 0 : moved / Math.min(copies, receivers);
  const most = (seconds: (node: NodeShare, lack: number) => number): number =>
    nodes.reduce((longest, node, i) => Math.max(longest, seconds(node, lacks[i]!)), 0);
  const total = (amount: (node: NodeShare, lack: number) => number): number =>
    nodes.reduce((sum, node, i) => sum + (node.before > 0 ? amount(node, lacks[i]!) : 0), 0);
  const terms: Record<Exclude<Resource, 'read'>, number> = {
    receive: most(({ rates }, lack) => secondsFor(lack, rates.network)),
    send: secondsFor(
      once,
      total(({ rates }) => rates.network),
    ),
    write: most(({ rates }, lack) => secondsFor(lack, rates.write)),
    device: deviceSeconds(once, total),
  };
  const [resource, seconds] = (Object.entries(terms) as [Resource, number][]).reduce((a, b) => (b[1] > a[1] ? b : a));
  return { seconds, resource, terms };
}

/** All devices that hold something together: each reads at its rate in the time that its writing leaves. */
function deviceSeconds(once: number, total: (amount: (node: NodeShare, lack: number) => number) => number): number {
  const reading = total(({ rates }) => rates.read);
  if (reading === Infinity) return 0;
  const written = total(({ rates }, lack) => secondsFor(lack, rates.write) * rates.read);
  return secondsFor(once + written, reading);
}
