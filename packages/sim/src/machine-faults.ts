import type { SimulatedMachine } from './machine.ts';
import { type Blow, othersThan, type Sky, startLater } from './sky.ts';

export const MACHINE_FAULTS = ['kill', 'power', 'blackout', 'pause', 'sleep', 'drift', 'jump'] as const;

const HOUR_MS = 3_600_000;
const DRIFT_MS = 10_000;

function stop(machine: SimulatedMachine, how: 'kill' | 'power', sky: Sky): void {
  if (!machine.isOn) return;
  sky.cluster.tell(`weather: ${how} of node ${machine.node}`);
  machine.crash(how);
  startLater(machine, sky);
}

function pause(machine: SimulatedMachine, asleep: boolean, sky: Sky): void {
  if (!machine.isOn || machine.isPaused) return;
  const { node } = machine;
  machine.pause(asleep);
  const others = othersThan(machine, sky).map((other) => other.node);
  for (const other of others) sky.lines.block(other, node);
  sky.lasts(sky.aWhile(), `node ${node} ${asleep ? 'sleeps' : 'stands still'}`, () => {
    machine.resume();
    for (const other of others) sky.lines.unblock(other, node);
  });
}

function jump(machine: SimulatedMachine, { random, cluster }: Sky): void {
  const ms = (random.below(2) === 0 ? -1 : 1) * (random.below(3) === 0 ? HOUR_MS : 2_500);
  cluster.tell(`weather: wall clock of node ${machine.node} jumps ${ms} ms`);
  machine.clock.jump(ms);
}

function drift({ node, clock }: SimulatedMachine, { random, lasts }: Sky): void {
  // a lease's margin allows for one part in a hundred
  const rate = 0.992 + 0.016 * random.fraction();
  clock.drift(rate);
  lasts(DRIFT_MS, `clock of node ${node} runs at ${rate.toFixed(4)}`, () => clock.drift(1));
}

/** Processes end, machines lose power, stand still or sleep, and clocks go wrong. */
export function machineFaults(sky: Sky): Record<(typeof MACHINE_FAULTS)[number], Blow> {
  return {
    kill: (machine) => stop(machine, 'kill', sky),
    power: (machine) => stop(machine, 'power', sky),
    blackout: () => {
      for (const machine of sky.cluster.machines) stop(machine, 'power', sky);
    },
    pause: (machine) => pause(machine, false, sky),
    sleep: (machine) => pause(machine, true, sky),
    drift: (machine) => drift(machine, sky),
    jump: (machine) => jump(machine, sky),
  };
}
