import type { NodeId } from '@webdfs/base';
import type { SimulatedMachine } from './machine.ts';
import { NEAR_MS } from './simulated-cluster.ts';
import { type Blow, othersThan, type Sky } from './sky.ts';

export const NETWORK_FAULTS = [
  'partition',
  'one-way',
  'isolate',
  'drop',
  'flaky',
  'delay',
  'slow-way',
  'jitter',
  'trickle',
] as const;

/** Between two breaks of a flaky line, at most. */
const BREAK_MS = 600;
/** Between two changes of how long lines take, at most. */
const JITTER_MS = 100;

function cutOff(machine: SimulatedMachine, fault: 'partition' | 'one-way' | 'isolate', sky: Sky): void {
  const { random, lines } = sky;
  const { node, road } = machine;
  const others = othersThan(machine, sky);
  const from = fault === 'isolate' ? others : [others[random.below(others.length)]!];
  const both = fault !== 'one-way';
  const blocked = from.flatMap(({ node: other }): [NodeId, NodeId][] => [
    [node, other],
    ...(both ? [[other, node] as [NodeId, NodeId]] : []),
  ]);
  for (const [a, b] of blocked) lines.block(a, b);
  const withMap = fault === 'isolate' && random.below(2) === 0;
  if (withMap) road.requestsLost = road.answersLost = true;
  const names = from.map((other) => other.node).join(', ');
  const what = `node ${node} is cut off from ${names}${both ? '' : ', one way'}${withMap ? ' and the map' : ''}`;
  sky.lasts(sky.aWhile(), what, () => {
    for (const [a, b] of blocked) lines.unblock(a, b);
    if (withMap) road.requestsLost = road.answersLost = false;
  });
}

function drop(machine: SimulatedMachine, sky: Sky): void {
  sky.cluster.tell(`weather: connections of node ${machine.node} are cut`);
  for (const { node } of othersThan(machine, sky)) sky.cluster.network.drop(machine.node, node);
}

/**
 * One line breaks again and again: what is under way on it is lost, so that calls are done and their answers are not heard,
 * posts never come, and what is tried again comes twice.
 */
function flaky(machine: SimulatedMachine, sky: Sky): void {
  const { cluster, random, lasts } = sky;
  const { node } = machine;
  const others = othersThan(machine, sky);
  const { node: other } = others[random.below(others.length)]!;
  const state = { over: false };
  const again = (): void => {
    cluster.clock.after(BREAK_MS * random.fraction(), () => {
      if (state.over) return;
      cluster.network.drop(node, other);
      again();
    });
  };
  again();
  lasts(sky.aWhile(), `the line of nodes ${node} and ${other} breaks again and again`, () => {
    state.over = true;
  });
}

function delay(machine: SimulatedMachine, sky: Sky): void {
  const { cluster, random, lasts } = sky;
  const { node: slow } = machine;
  const others = othersThan(machine, sky).map(({ node }) => node);
  const ms = random.below(2) === 0 ? 20 : 400 * random.fraction();
  for (const node of others) cluster.network.delay(slow, node, ms);
  lasts(sky.aWhile(), `lines of node ${slow} take ${Math.round(ms)} ms`, () => {
    for (const node of others) cluster.network.delay(slow, node, random.fraction() * NEAR_MS);
  });
}

/** One way of one line takes longer than anybody waits. */
function slowWay(machine: SimulatedMachine, sky: Sky): void {
  const { cluster, random, lasts } = sky;
  const { node: from } = machine;
  const others = othersThan(machine, sky);
  const { node: to } = others[random.below(others.length)]!;
  const ms = 300 + 4_000 * random.fraction();
  cluster.network.delayOneWay(from, to, ms);
  lasts(sky.aWhile(), `the way from node ${from} to ${to} takes ${Math.round(ms)} ms`, () => {
    cluster.network.delayOneWay(from, to, random.fraction() * NEAR_MS);
  });
}

/** Every line takes another time every few milliseconds: what different nodes say arrives in any order. */
function jitter(sky: Sky): void {
  const { cluster, random, lasts } = sky;
  const state = { over: false };
  const all = (most: number): void => {
    for (const { node: a } of cluster.machines) {
      for (const { node: b } of cluster.machines) {
        if (a !== b) cluster.network.delayOneWay(a, b, most * random.fraction() ** 3);
      }
    }
  };
  const again = (): void => {
    if (state.over) return all(NEAR_MS);
    all(JITTER_MS);
    cluster.clock.after(JITTER_MS * random.fraction(), again);
  };
  again();
  lasts(sky.aWhile(), 'every line takes now this long, now that', () => {
    state.over = true;
  });
}

function trickle(machine: SimulatedMachine, sky: Sky): void {
  const { cluster, random, lasts } = sky;
  const { node: slow } = machine;
  const others = othersThan(machine, sky).map(({ node }) => node);
  const bytesPerMs = 1 + 20 * random.fraction();
  for (const node of others) cluster.network.slow(slow, node, bytesPerMs);
  lasts(sky.aWhile(), `lines of node ${slow} carry ${bytesPerMs.toFixed(1)} bytes a millisecond`, () => {
    for (const node of others) cluster.network.slow(slow, node, Infinity);
  });
}

/**
 * Lines are cut, break, or take long; each connection keeps its order, as its sockets do, and no two are alike. Nothing comes
 * twice but what is sent twice.
 */
export function networkFaults(sky: Sky): Record<(typeof NETWORK_FAULTS)[number], Blow> {
  return {
    partition: (machine) => cutOff(machine, 'partition', sky),
    'one-way': (machine) => cutOff(machine, 'one-way', sky),
    isolate: (machine) => cutOff(machine, 'isolate', sky),
    drop: (machine) => drop(machine, sky),
    flaky: (machine) => flaky(machine, sky),
    delay: (machine) => delay(machine, sky),
    'slow-way': (machine) => slowWay(machine, sky),
    jitter: () => jitter(sky),
    trickle: (machine) => trickle(machine, sky),
  };
}
