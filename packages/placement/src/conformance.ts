import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm } from './algorithm.ts';
import { domainOf, placeableNodes } from './domains.ts';
import { movesBetween } from './moves.ts';
import {
  anyTopology,
  type Chance,
  foundingTopology,
  keepNodes,
  mapNodes,
  SeededChance,
  subclusterOf,
} from './samples.ts';
import type { AlgorithmName, Topology } from './topology.ts';

export {
  anyTopology,
  type Chance,
  foundingTopology,
  keepNodes,
  mapNodes,
  rackOf,
  rackTopology,
  SeededChance,
  subclusterOf,
} from './samples.ts';
export { UNIT_WEIGHT } from './topology.ts';

/** How much a run of the suite looks at. */
export interface Scope {
  /** Random topologies for each promise. */
  readonly topologies: number;
  /** log2 of the groups placed under each of them. */
  readonly groupBits: number;
}

const SHORT: Scope = { topologies: 12, groupBits: 8 };
/** Lists asked for are up to this long: more copies than the topologies are for. */
const MOST = 7;

/** The seed of a randomised test: `WEBDFS_SEED` if set, else a fresh one; printed so that the run can be repeated. */
export function seedOf(context: TestContext): number {
  const given = process.env['WEBDFS_SEED'];
  const seed = given === undefined ? crypto.getRandomValues(new Uint32Array(1))[0]! : Number(given);
  context.diagnostic(`replay: WEBDFS_SEED=${seed} npm test`);
  return seed;
}

/** An algorithm and how far to look. */
interface Subject {
  readonly house: string;
  readonly algorithm: PlacementAlgorithm;
  readonly scope: Scope;
}

function published({ algorithm, scope }: Subject, topology: Topology, before?: Topology): Topology {
  const place = before === undefined ? undefined : algorithm.prepare(before);
  const placed = place && ((group: number): NodeId[] => place(group, topology.copies));
  return algorithm.publish?.(topology, { groupBits: scope.groupBits, ...(placed && { placed }) }) ?? topology;
}

/** A change of a published topology: a table is published anew from the one before, calibration stays as it was. */
function changed(subject: Subject, before: Topology, after: Topology): Topology {
  return subject.algorithm.supports.stores === 'table' ? published(subject, after, before) : after;
}

/** Many random topologies that the algorithm supports, published. */
function sampled(context: TestContext, subject: Subject): { chance: Chance; topologies: Topology[] } {
  const chance = new SeededChance(seedOf(context));
  const topologies = Array.from({ length: subject.scope.topologies }, () =>
    published(subject, anyTopology(chance, subject.algorithm)),
  );
  return { chance, topologies };
}

function assertWhole(topology: Topology, list: readonly NodeId[], count: number): void {
  assert.equal(list.length, count);
  assert.equal(new Set(list).size, count);
  const live = new Set(placeableNodes(topology).map((node) => node.id));
  assert.ok(list.every((node) => live.has(node)));
}

type Check = (topology: Topology, place: (group: number, count: number) => NodeId[], at: [number, number]) => void;

/** `check` sees every group of many topologies, each with a count of its own. */
function forAll(context: TestContext, subject: Subject, check: Check): void {
  const { chance, topologies } = sampled(context, subject);
  for (const topology of topologies) {
    const place = subject.algorithm.prepare(topology);
    const most = Math.min(MOST, placeableNodes(topology).length);
    for (let group = 0; group < 2 ** subject.scope.groupBits; group++)
      check(topology, place, [group, 1 + chance.below(most)]);
  }
}

function testLists(subject: Subject): void {
  const { house, algorithm, scope } = subject;
  const groups = 2 ** scope.groupBits;
  test(`${house}: the same topology gives the same lists, however it travelled`, (t) => {
    for (const topology of sampled(t, subject).topologies) {
      const travelled = JSON.parse(JSON.stringify(topology)) as Topology;
      const shuffled: Topology = {
        ...travelled,
        subclusters: travelled.subclusters.map((part) => ({ ...part, nodes: part.nodes.toReversed() })),
      };
      const place = algorithm.prepare(topology);
      const other = algorithm.prepare(shuffled);
      for (let group = 0; group < groups; group++) assert.deepEqual(place(group, 3), other(group, 3));
    }
  });

  test(`${house}: a list has as many nodes as asked for, all different, all with weight`, (t) => {
    forAll(t, subject, (topology, place, [group, count]) => assertWhole(topology, place(group, count), count));
  });

  test(`${house}: one copy more keeps the ${algorithm.supports.order === 'prefix' ? 'order' : 'members'} of the others`, (t) => {
    forAll(t, subject, (_, place, [group, count]) => {
      const more = place(group, count);
      const fewer = place(group, count - 1);
      if (algorithm.supports.order === 'prefix') assert.deepEqual(more.slice(0, -1), fewer);
      else assert.ok(fewer.every((node) => more.includes(node)));
    });
  });
}

/** What a degraded cluster may come to: lists stay whole where nobody would have chosen the topology. */
function testDegraded(subject: Subject): void {
  const { house, algorithm, scope } = subject;
  const groups = 2 ** scope.groupBits;
  test(`${house}: lists are whole where sub-clusters are too small and weights are fractions`, (t) => {
    const chance = new SeededChance(seedOf(t));
    const supports = { ...algorithm.supports, fractionalWeights: true, wideSubclusters: 'none' as const };
    for (let i = 0; i < scope.topologies; i++) {
      const topology = published(subject, anyTopology(chance, { ...algorithm, supports }));
      const place = algorithm.prepare(topology);
      for (let group = 0; group < groups; group++) assertWhole(topology, place(group, 3), 3);
    }
  });

  test(`${house}: lists are whole when a node goes and nothing is published`, (t) => {
    const { chance, topologies } = sampled(t, subject);
    for (const topology of topologies) {
      const live = placeableNodes(topology);
      const lost = live[chance.below(live.length)]!.id;
      const rest = keepNodes(topology, (node) => node.id !== lost);
      const count = Math.min(3, live.length - 1);
      const place = algorithm.prepare(rest);
      for (let group = 0; group < groups; group++) assertWhole(rest, place(group, count), count);
    }
  });
}

function testChanges(subject: Subject): void {
  const { house, algorithm, scope } = subject;
  const groups = 2 ** scope.groupBits;
  test(`${house}: dropping a drained node or an empty sub-cluster moves nothing`, (t) => {
    const { chance, topologies } = sampled(t, subject);
    for (const topology of topologies) {
      const count = 1 + chance.below(Math.min(MOST, placeableNodes(topology).length));
      const place = algorithm.prepare(topology);
      const later = algorithm.prepare(keepNodes(topology, (node) => node.weight > 0));
      for (let group = 0; group < groups; group++) assert.deepEqual(later(group, count), place(group, count));
    }
  });
}

function testGrowth(subject: Subject): void {
  const { house, algorithm, scope } = subject;
  const groups = 2 ** scope.groupBits;
  test(`${house}: adding nodes moves copies only to them`, (t) => {
    const { chance, topologies } = sampled(t, subject);
    for (const { domain: _, ...topology } of topologies) {
      const added = subclusterOf(1_000, { firstId: 1_000, count: 3, weight: 1 + chance.below(8) });
      const grown = changed(subject, topology, { ...topology, subclusters: [...topology.subclusters, added] });
      const before = algorithm.prepare(topology);
      const after = algorithm.prepare(grown);
      const moves = movesBetween(
        (group) => before(group, 3),
        (group) => after(group, 3),
        groups,
      );
      for (const move of moves) assert.ok(move.come.every((node) => node >= 1_000));
    }
  });
}

function testReweight(subject: Subject): void {
  const { house, algorithm, scope } = subject;
  const groups = 2 ** scope.groupBits;
  test(`${house}: a node that gains weight only gains copies, one that loses weight only loses them`, (t) => {
    const { chance, topologies } = sampled(t, subject);
    for (const topology of topologies) {
      const live = placeableNodes(topology);
      const chosen = live[chance.below(live.length)]!.id;
      const heavier = mapNodes(topology, (node) => (node.id === chosen ? { ...node, weight: node.weight * 2 } : node));
      const light = algorithm.prepare(topology);
      const heavy = algorithm.prepare(changed(subject, topology, heavier));
      const count = Math.min(live.length, 1 + chance.below(4));
      const moves = movesBetween(
        (group) => light(group, count),
        (group) => heavy(group, count),
        groups,
      );
      for (const move of moves) {
        assert.deepEqual(move.come, [chosen]);
        assert.equal(move.gone.length, 1);
      }
    }
  });
}

function testSpread(subject: Subject): void {
  test(`${subject.house}: a domain holds a second copy only where no other could take it`, (t) => {
    forAll(t, subject, (topology, place, [group, count]) => {
      if (topology.domain === undefined) return;
      const sizes = new Map<string, number>();
      const held = new Map<string, number>();
      const domains = new Map(placeableNodes(topology).map((node) => [node.id, domainOf(topology, node)]));
      for (const domain of domains.values()) sizes.set(domain, (sizes.get(domain) ?? 0) + 1);
      for (const node of place(group, count)) held.set(domains.get(node)!, (held.get(domains.get(node)!) ?? 0) + 1);
      const most = Math.max(...held.values());
      for (const [domain, size] of sizes) {
        const here = held.get(domain) ?? 0;
        assert.ok(here >= most - 1 || here === size, `${domain} holds ${here} of ${size}, another ${most}`);
      }
    });
  });
}

function testLoad({ house, algorithm }: Subject): void {
  test(`${house}: the load is ${algorithm.supports.weights ? 'proportional to weight' : 'the same for all'}, within the bias of a heavy node`, () => {
    const groupBits = 14;
    const founding = foundingTopology(algorithm.name as AlgorithmName, 1);
    const place = algorithm.prepare(algorithm.publish?.(founding, { groupBits }) ?? founding);
    const load = new Map<NodeId, number>();
    for (let group = 0; group < 2 ** groupBits; group++) {
      for (const node of place(group, 3)) load.set(node, (load.get(node) ?? 0) + 1);
    }
    // the weights are 1, 2 and 4 of 35; uncalibrated draws are off by up to 7 %, noise by 3 %
    for (const [node, count] of load) {
      const share = algorithm.supports.weights ? [1, 2, 4][Math.floor((node - 1) / 5)]! / 35 : 1 / 15;
      const expected = 2 ** groupBits * 3 * share;
      assert.ok(Math.abs(count / expected - 1) < 0.12, `node ${node} holds ${count}, expected ${expected}`);
    }
    assert.equal(load.size, 15);
  });
}

/**
 * The promises of every placement algorithm, as tests for `node:test`. Each house runs them; `supports` says which of the
 * stronger ones it makes.
 */
export function testPlacement(house: string, algorithm: PlacementAlgorithm, scope: Scope = SHORT): void {
  const subject: Subject = { house, algorithm, scope };
  testLists(subject);
  testDegraded(subject);
  testChanges(subject);
  testLoad(subject);
  if (algorithm.supports.exactGrowth) testGrowth(subject);
  if (algorithm.supports.exactReweight) testReweight(subject);
  if (algorithm.supports.domains) testSpread(subject);
}
