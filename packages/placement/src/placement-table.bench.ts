import type { GroupId } from './ids.ts';
import { subclusterOf } from './samples.ts';
import { compilePlacement, type PlacementTable } from './placement-table.ts';
import type { AlgorithmName, Topology, TopologyNode } from './topology.ts';

/**
 * What compiled tables cost: a look-up beside a bare read, compiling 65 536 groups for 500 nodes, and compiling again after
 * one change. Prints figures and gates; ends with 1 if a gate is missed. Times are CPU of this process, medians of `RUNS`.
 */

const GROUP_BITS = 16;
const GROUPS = 2 ** GROUP_BITS;
const COPIES = 3;
const RUNS = 7;
const LOOKUPS = 1 << 22;
const GATE = { lookupNs: 60, compileMs: 1_500, recompileShare: 0.1 } as const;

/** 25 racks of 20 nodes, weights 1 to 4. */
function fiveHundred(
  algorithm: AlgorithmName,
  change: (node: TopologyNode) => TopologyNode = (node) => node,
): Topology {
  const subclusters = Array.from({ length: 25 }, (_, i) =>
    subclusterOf(i + 1, { firstId: i * 20 + 1, count: 20, weight: 1 + (i % 4), labels: { rack: `r${i + 1}` } }),
  ).map((subcluster) => ({ ...subcluster, nodes: subcluster.nodes.map(change) }));
  return { algorithm, version: 1, seed: 7, copies: COPIES, domain: 'rack', subclusters };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

/** Median CPU of `work`, ms. */
function cpuMs(work: () => void): number {
  const runs = Array.from({ length: RUNS }, () => {
    const start = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000;
  });
  return median(runs);
}

function compiled(topology: Topology, previous?: PlacementTable): PlacementTable {
  const table = compilePlacement(topology, GROUP_BITS, COPIES, previous === undefined ? {} : { previous });
  for (let group = 0; group < GROUPS; group++) table.members(group as GroupId);
  return table;
}

let sink = 0;

/** Median CPU of one call of `read` with a random group, ns. */
function lookupNs(read: (group: number) => number): number {
  const groups = new Uint32Array(LOOKUPS);
  for (let i = 0, state = 1; i < LOOKUPS; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    groups[i] = state >>> (32 - GROUP_BITS);
  }
  const all = (): void => {
    for (let i = 0; i < LOOKUPS; i++) sink += read(groups[i]!);
  };
  all();
  return (cpuMs(all) * 1e6) / LOOKUPS;
}

const failed: string[] = [];

function line(what: string, value: number, unit: string, gate?: number): void {
  const missed = gate !== undefined && value > gate;
  if (missed) failed.push(what);
  const verdict = gate === undefined ? '' : `gate ${gate} ${unit}: ${missed ? 'MISSED' : 'met'}`;
  console.log(
    `${what.padEnd(62)} ${value.toFixed(value < 100 ? 1 : 0).padStart(7)} ${unit.padEnd(2)}  ${verdict}`.trimEnd(),
  );
}

console.log(`Node ${process.version}, ${GROUPS} groups, 500 nodes in 25 racks, ${COPIES} copies, medians of ${RUNS}`);

const table = compiled(fiveHundred('wrd'));
const bare = Uint32Array.from({ length: GROUPS }, (_, i) => i);
line(
  'look-up: a bare Uint32Array',
  lookupNs((group) => bare[group]!),
  'ns',
);
line(
  'look-up: the three members of a group, one by one',
  lookupNs((group) => {
    const of = group as GroupId;
    return table.memberAt(of, 0) + table.memberAt(of, 1) + table.memberAt(of, 2);
  }),
  'ns',
  GATE.lookupNs,
);
line(
  'look-up: a list of the members of a group',
  lookupNs((group) => table.members(group as GroupId).length),
  'ns',
  GATE.lookupNs,
);

const fresh = cpuMs(() => compiled(fiveHundred('wrd')));
line('compile: wrd', fresh, 'ms', GATE.compileMs);
line(
  'compile: rush-r',
  cpuMs(() => compiled(fiveHundred('rush-r'))),
  'ms',
  GATE.compileMs,
);

const only = (change: (node: TopologyNode) => TopologyNode): Topology =>
  fiveHundred('wrd', (node) => (node.id === 77 ? change(node) : node));
const inTenth = GATE.recompileShare * fresh;
line(
  'compile again: one node twice as heavy',
  cpuMs(() =>
    compiled(
      only((node) => ({ ...node, weight: node.weight * 2 })),
      table,
    ),
  ),
  'ms',
  inTenth,
);
line(
  'compile again: one node half as heavy',
  cpuMs(() =>
    compiled(
      only((node) => ({ ...node, weight: node.weight / 2 })),
      table,
    ),
  ),
  'ms',
  inTenth,
);
line(
  'compile again: one node drained',
  cpuMs(() =>
    compiled(
      only((node) => ({ ...node, weight: 0 })),
      table,
    ),
  ),
  'ms',
  inTenth,
);
const grown = fiveHundred('wrd');
const rack = subclusterOf(26, { firstId: 501, count: 20, weight: 4, labels: { rack: 'r26' } });
line(
  'compile again: a rack of 20 added',
  cpuMs(() => compiled({ ...grown, subclusters: [...grown.subclusters, rack] }, table)),
  'ms',
);
line(
  'compile again: nothing changed',
  cpuMs(() => compiled(fiveHundred('wrd'), table)),
  'ms',
);

if (sink < 0) console.log(sink);
if (failed.length > 0) {
  console.log(`missed: ${failed.join(', ')}`);
  process.exitCode = 1;
}
