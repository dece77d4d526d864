import { WebdfsError } from '@webdfs/base';
import { type Rates, secondsFor } from './rates.ts';

/**
 * The least time in which a store can grow or shrink: what no scheme can beat, on equal nodes, with uniform placement.
 * All stages overlap, so a bound is the largest of its terms, and its name says what sets it.
 *
 * Derived here under the hypotheses of Cheriere, Dorier and Antoniu, "Pufferbench" (PDSW-DISCS 2018): load balanced before and
 * after, uniform placement, no copy dropped before its replacement is durable. Compared with linear programs (bounds.test.ts).
 */
export interface Setup {
  /** Nodes at the start. */
  readonly nodes: number;
  /** Nodes added or removed. */
  readonly change: number;
  readonly copies: number;
  /** What each node holds at the start, bytes. */
  readonly bytesPerNode: number;
}

/** `device` is reading and writing together. */
export type Resource = 'receive' | 'send' | 'write' | 'read' | 'device';

export interface Bound {
  readonly seconds: number;
  /** What sets it. */
  readonly resource: Resource;
  readonly terms: Readonly<Partial<Record<Resource, number>>>;
}

/** What a design can do when nodes are added. */
export interface CommissionAbilities {
  /** New nodes pass on what they received; else old nodes send every copy. True if left out. */
  readonly forwards?: boolean;
  /** A block that was read is kept for its second destination; else it is read, or re-read by whoever forwards it. True if left out. */
  readonly keepsBlocks?: boolean;
  /** `any`: free to choose whichever balanced placement is cheapest, not the uniform one alone. */
  readonly placement?: 'uniform' | 'any';
}

/** What a design can do when nodes are removed. */
export interface DecommissionAbilities {
  /** Who reads and sends: whichever holder is best, or the leaving nodes alone. */
  readonly sources?: 'any' | 'leaving';
  /** A block that was read is kept for its second destination. True if left out. */
  readonly keepsBlocks?: boolean;
  /** The device reads and writes at the same time, each at its full rate. */
  readonly independentPaths?: boolean;
}

function boundOf(terms: Partial<Record<Resource, number>>): Bound {
  let bound: { seconds: number; resource: Resource } = { seconds: 0, resource: 'receive' };
  for (const [resource, seconds] of Object.entries(terms)) {
    if (seconds > bound.seconds) bound = { seconds, resource: resource as Resource };
  }
  return { ...bound, terms };
}

/** Chance that `copies` distinct nodes of `all` lie among `some` of them: C(some, copies) / C(all, copies). */
function shareWithin(some: number, all: number, copies: number): number {
  let share = 1;
  for (let i = 0; i < copies; i++) share *= Math.max(0, some - i) / (all - i);
  return share;
}

function check({ nodes, change, copies, bytesPerNode }: Setup): void {
  const whole = [nodes, change, copies].every((count) => Number.isInteger(count) && count > 0);
  if (!whole || !(bytesPerNode >= 0)) {
    throw new WebdfsError(
      'INVALID',
      `no bound for ${nodes} nodes, ${change} more or less, ${copies} copies of ${bytesPerNode} bytes a node`,
    );
  }
}

/** Share of objects that get no new holder when `change` nodes join: p0. */
export function untouchedByCommission({ nodes, change, copies }: Setup): number {
  return shareWithin(nodes, nodes + change, copies);
}

/** Share of objects that lose no holder when `change` nodes leave: q0. */
export function untouchedByDecommission({ nodes, change, copies }: Setup): number {
  return shareWithin(nodes - change, nodes, copies);
}

/**
 * The bound for adding nodes.
 *
 * @throws WebdfsError INVALID if there are fewer nodes than copies, or a figure makes no sense
 */
export function commissionBound(setup: Setup, rates: Rates, abilities: CommissionAbilities = {}): Bound {
  check(setup);
  const { nodes, change, copies, bytesPerNode } = setup;
  if (nodes < copies) throw new WebdfsError('INVALID', `${copies} copies need as many nodes, there are ${nodes}`);
  const { forwards = true, keepsBlocks = true, placement = 'uniform' } = abilities;
  const load = (nodes * bytesPerNode) / (nodes + change);
  /** What each old node sends or reads if every object that moves leaves the old nodes once … */
  const once =
    placement === 'any'
      ? (load * change) / nodes / Math.min(copies, change)
      : (bytesPerNode * (1 - untouchedByCommission(setup))) / copies;
  /** … and if it leaves once for every copy. */
  const perCopy = (load * change) / nodes;
  const rereads = forwards && !keepsBlocks;
  return boundOf({
    receive: secondsFor(load, rates.network),
    send: secondsFor(forwards ? once : perCopy, rates.network),
    write: secondsFor(load, rates.write),
    read: secondsFor(keepsBlocks || forwards ? once : perCopy, rates.read),
    ...(rereads ? { device: ((change * load) / (nodes + change)) * (1 / rates.read + 1 / rates.write) } : {}),
  });
}

/**
 * The bound for removing nodes.
 *
 * @throws WebdfsError INVALID if fewer nodes than copies are left, or a figure makes no sense
 */
export function decommissionBound(setup: Setup, rates: Rates, abilities: DecommissionAbilities = {}): Bound {
  check(setup);
  const { nodes, change, copies, bytesPerNode } = setup;
  const left = nodes - change;
  if (left < copies) throw new WebdfsError('INVALID', `${copies} copies need as many nodes, ${left} would be left`);
  const { sources = 'any', keepsBlocks = true, independentPaths = false } = abilities;
  const moved = change * bytesPerNode;
  const touched = ((nodes * bytesPerNode) / copies) * (1 - untouchedByDecommission(setup));
  const reads = secondsFor(keepsBlocks ? touched : moved, rates.read);
  const terms = {
    receive: secondsFor(moved / left, rates.network),
    write: secondsFor(moved / left, rates.write),
    device: independentPaths ? reads / nodes : (secondsFor(moved, rates.write) + reads) / nodes,
  };
  if (sources === 'any' && copies > 1) return boundOf(terms);
  return boundOf({
    ...terms,
    send: secondsFor(bytesPerNode, rates.network),
    read: secondsFor(bytesPerNode, rates.read),
  });
}

/**
 * Removing nodes whose shards may be rebuilt from `dataShards` others instead of copied, bound by the network.
 *
 * @returns the share that the leaving nodes best send themselves, and the seconds it takes
 * @throws WebdfsError INVALID if more than half of the nodes leave
 */
export function rebuildBound(
  setup: Omit<Setup, 'copies'>,
  dataShards: number,
  network: number,
): { sentShare: number; seconds: number } {
  const { nodes, change, bytesPerNode } = setup;
  check({ ...setup, copies: dataShards });
  if (change * 2 > nodes) throw new WebdfsError('INVALID', `${change} of ${nodes} nodes are more than half`);
  const sentShare = (change * dataShards) / (nodes - 2 * change + change * dataShards);
  return { sentShare, seconds: secondsFor(sentShare * bytesPerNode, network) };
}
