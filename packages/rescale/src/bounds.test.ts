import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Bound,
  commissionBound,
  type CommissionAbilities,
  decommissionBound,
  type DecommissionAbilities,
  rebuildBound,
  untouchedByCommission,
  untouchedByDecommission,
} from './bounds.ts';
import type { Rates } from './rates.ts';

const UNBOUND: Rates = { network: Infinity, read: Infinity, write: Infinity };
const GB = 1e9;
/** The platform of the published measurements: 10 Gbit/s; the drive's rate is assumed. */
const NETWORK = 1.25 * GB;
const DRIVE = 0.2 * GB;

function near(actual: number, expected: number, tolerance: number, what: string): void {
  assert.ok(Math.abs(actual - expected) <= tolerance, `${what}: ${actual} instead of ${expected}`);
}

function holds(bound: Bound, seconds: number, resource: string, what: string): void {
  near(bound.seconds, seconds, 1e-6, what);
  assert.equal(bound.resource, resource, what);
}

type Case<Abilities> = readonly [shape: string, Partial<Rates>, seconds: number, resource: string, Abilities?];

/** Equal to a linear program over all initial and final holder sets and all forwarding trees; 12 bytes a node. */
const COMMISSIONS: readonly Case<CommissionAbilities>[] = [
  ['3+1 r2', { network: 1 }, 9, 'receive'],
  ['3+2 r2', { network: 1 }, 7.2, 'receive'],
  ['3+4 r2', { network: 1 }, 36 / 7, 'receive'],
  ['2+5 r2', { network: 1 }, 40 / 7, 'send'],
  ['3+4 r2', { network: 1 }, 48 / 7, 'send', { forwards: false }],
  ['2+5 r2', { network: 1 }, 30 / 7, 'send', { placement: 'any' }],
  ['3+4 r2', { read: 1, write: 2 }, 36 / 7, 'read'],
  ['3+2 r2', { network: 1, read: 0.7, write: 0.9 }, 8, 'write'],
  ['2+6 r2', { network: 1, read: 0.3, write: 1 }, 270 / 14, 'read'],
  ['3+4 r2', { read: 1, write: 1 }, 288 / 49, 'device', { keepsBlocks: false }],
  ['3+4 r2', { read: 1, write: 1 }, 48 / 7, 'read', { forwards: false, keepsBlocks: false }],
];

const DECOMMISSIONS: readonly Case<DecommissionAbilities>[] = [
  ['5-1 r2', { network: 1 }, 3, 'receive'],
  ['5-3 r2', { network: 1 }, 18, 'receive'],
  ['5-1 r1', { network: 1 }, 12, 'send'],
  ['5-2 r2', { read: 1, write: 1 }, 9, 'device'],
  ['5-2 r2', { read: 1, write: 1 }, 9.6, 'device', { keepsBlocks: false }],
  ['5-1 r2', { read: 0.5, write: 2 }, 6, 'device'],
  ['5-2 r3', { read: 1, write: 1 }, 8.4, 'device'],
  ['5-1 r2', { network: 1, read: 0.8, write: 1.2 }, 5, 'device'],
  ['5-2 r3', { network: 1, read: 2, write: 0.3 }, 80 / 3, 'write'],
];

function setupOf(shape: string): { nodes: number; change: number; copies: number; bytesPerNode: number } {
  const [, nodes, change, copies] = /^(\d+)[+-](\d+) r(\d)$/.exec(shape)!;
  return { nodes: Number(nodes), change: Number(change), copies: Number(copies), bytesPerNode: 12 };
}

test('the bound for adding nodes is the optimum of the linear program', () => {
  for (const [shape, rates, seconds, resource, abilities] of COMMISSIONS) {
    holds(commissionBound(setupOf(shape), { ...UNBOUND, ...rates }, abilities), seconds, resource, shape);
  }
});

test('the bound for removing nodes is the optimum of the linear program', () => {
  for (const [shape, rates, seconds, resource, abilities] of DECOMMISSIONS) {
    holds(decommissionBound(setupOf(shape), { ...UNBOUND, ...rates }, abilities), seconds, resource, shape);
  }
});

test('growing ten nodes of the published platform', () => {
  const rows = [
    [5, 0.26374, 26.667, 9.817, 26.667, 26.667, 166.67, 61.36, 166.67],
    [10, 0.10526, 20, 11.93, 20, 20, 125, 74.56, 125],
    [15, 0.05217, 16, 12.638, 16, 24, 100, 78.99, 100],
    [20, 0.02956, 13.333, 12.939, 13.333, 26.667, 83.33, 80.87, 83.33],
    [25, 0.01833, 11.429, 13.089, 13.089, 28.571, 71.43, 81.81, 81.81],
    [30, 0.01215, 10, 13.171, 13.171, 30, 62.5, 82.32, 82.32],
  ] as const;
  for (const [change, untouched, receive, send, network, unforwarded, write, read, drive] of rows) {
    const setup = { nodes: 10, change, copies: 3, bytesPerNode: 50 * GB };
    const memory = commissionBound(setup, { ...UNBOUND, network: NETWORK });
    const disk = commissionBound(setup, { ...UNBOUND, read: DRIVE, write: DRIVE });
    near(untouchedByCommission(setup), untouched, 5e-6, `p0 of 10+${change}`);
    near(memory.terms.receive!, receive, 5e-4, `receive, 10+${change}`);
    near(memory.terms.send!, send, 5e-4, `send, 10+${change}`);
    near(memory.seconds, network, 5e-4, `network, 10+${change}`);
    const plain = commissionBound(setup, { ...UNBOUND, network: NETWORK }, { forwards: false });
    near(plain.seconds, unforwarded, 5e-4, `without forwarding, 10+${change}`);
    near(disk.terms.write!, write, 5e-3, `write, 10+${change}`);
    near(disk.terms.read!, read, 5e-3, `read, 10+${change}`);
    near(disk.seconds, drive, 5e-3, `drive, 10+${change}`);
  }
});

test('shrinking twenty nodes of the published platform', () => {
  const rows = [
    [1, 0.85, 2.105, 13.16, 25, 25],
    [2, 0.71579, 4.444, 27.78, 48.68, 50],
    [3, 0.59649, 7.059, 44.12, 71.13, 75],
    [4, 0.49123, 10, 62.5, 92.4, 100],
    [5, 0.39912, 13.333, 83.33, 112.57, 125],
    [6, 0.3193, 17.143, 107.14, 131.73, 150],
    [7, 0.25088, 21.538, 134.62, 149.93, 175],
  ] as const;
  for (const [change, untouched, network, write, drive, perCopy] of rows) {
    const setup = { nodes: 20, change, copies: 3, bytesPerNode: 50 * GB };
    const rates = { ...UNBOUND, network: NETWORK };
    const disk = { ...UNBOUND, read: DRIVE, write: DRIVE };
    near(untouchedByDecommission(setup), untouched, 5e-6, `q0 of 20-${change}`);
    near(decommissionBound(setup, rates).seconds, network, 5e-4, `network, 20-${change}`);
    near(decommissionBound(setup, rates, { sources: 'leaving' }).seconds, 40, 1e-9, `drained, 20-${change}`);
    near(decommissionBound(setup, disk).terms.write!, write, 5e-3, `write, 20-${change}`);
    near(decommissionBound(setup, disk).seconds, drive, 5e-3, `drive, 20-${change}`);
    const reading = decommissionBound(setup, disk, { keepsBlocks: false });
    near(reading.seconds, perCopy, 5e-3, `a read per copy, 20-${change}`);
  }
});

test('devices that read while they write share nothing', () => {
  const setup = { nodes: 5, change: 2, copies: 2, bytesPerNode: 12 };
  const bound = decommissionBound(setup, { ...UNBOUND, read: 1, write: 1 }, { independentPaths: true });
  holds(bound, 8, 'write', '5-2 with two paths');
  near(bound.terms.device!, 21 / 5, 1e-9, 'reads alone');
});

test('rebuilding shards beats copying them from the node that leaves', () => {
  const { sentShare, seconds } = rebuildBound({ nodes: 20, change: 1, bytesPerNode: 50 * GB }, 4, NETWORK);
  near(sentShare, 0.182, 5e-4, 'share that is sent');
  near(seconds, 7.27, 5e-3, 'seconds');
  assert.throws(() => rebuildBound({ nodes: 20, change: 11, bytesPerNode: 1 }, 4, 1), { code: 'INVALID' });
});

test('a setup that cannot hold its copies has no bound', () => {
  const setup = { nodes: 4, change: 2, copies: 3, bytesPerNode: 1 };
  assert.throws(() => decommissionBound(setup, UNBOUND), { code: 'INVALID' });
  assert.throws(() => commissionBound({ ...setup, nodes: 2 }, UNBOUND), { code: 'INVALID' });
  assert.throws(() => commissionBound({ ...setup, change: 0 }, UNBOUND), { code: 'INVALID' });
});
