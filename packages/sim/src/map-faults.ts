import type { SimulatedMachine } from './machine.ts';
import { MAP_MS } from './machine.ts';
import type { Blow, Sky } from './sky.ts';

export const MAP_FAULTS = ['map-away', 'map-outage', 'map-slow', 'watch-stuck'] as const;

function away(machines: readonly SimulatedMachine[], sky: Sky): void {
  const dice = sky.random.below(3);
  const [requests, answers] = [dice !== 1, dice !== 0];
  const who = machines.map(({ node }) => node).join(', ');
  const set = (isLost: boolean): void => {
    for (const { road } of machines) {
      road.requestsLost = isLost && requests;
      road.answersLost = isLost && answers;
    }
  };
  set(true);
  sky.lasts(sky.aWhile(), `no ${requests ? 'requests' : 'answers'} of the map, nodes ${who},`, () => set(false));
}

function slow({ node, road }: SimulatedMachine, { random, lasts, aWhile }: Sky): void {
  road.latencyMs = 100 + 1_500 * random.fraction();
  lasts(aWhile(), `the map takes up to ${Math.round(road.latencyMs)} ms each way, node ${node},`, () => {
    road.latencyMs = MAP_MS;
  });
}

function watchStuck({ node, road }: SimulatedMachine, { lasts, aWhile }: Sky): void {
  road.watchStuck = true;
  lasts(aWhile(), `no changes of the map, node ${node},`, () => {
    road.watchStuck = false;
  });
}

/** The map store is away, or slow, for one node or all. */
export function mapFaults(sky: Sky): Record<(typeof MAP_FAULTS)[number], Blow> {
  return {
    'map-away': (machine) => away([machine], sky),
    'map-outage': () => away(sky.cluster.machines, sky),
    'map-slow': (machine) => slow(machine, sky),
    'watch-stuck': (machine) => watchStuck(machine, sky),
  };
}
