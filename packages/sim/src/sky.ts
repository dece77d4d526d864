import type { SeededRandom } from '@webdfs/base';
import type { Invariants } from './invariants.ts';
import type { Lines } from './lines.ts';
import type { SimulatedMachine } from './machine.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';

/** What a fault does to a machine; some do it to all. */
export type Blow = (machine: SimulatedMachine) => void;

/** What every kind of fault works with. */
export interface Sky {
  readonly cluster: SimulatedCluster;
  readonly invariants: Invariants;
  readonly random: SeededRandom;
  readonly lines: Lines;
  /** Machines that are off, and will be switched on. */
  readonly off: Set<SimulatedMachine>;
  /** Whether it has cleared up. */
  readonly isOver: () => boolean;
  /** Something lasts `ms`, then passes; or earlier, when it clears up. */
  readonly lasts: (ms: number, what: string, pass: () => void) => void;
  /** Mostly short, at times longer than every time-out. */
  readonly aWhile: () => number;
}

/** All machines but one. */
export function othersThan(machine: SimulatedMachine, { cluster }: Sky): readonly SimulatedMachine[] {
  return cluster.machines.filter((other) => other !== machine);
}

/** A machine is off, and is switched on later. */
export function startLater(machine: SimulatedMachine, sky: Sky): void {
  sky.off.add(machine);
  sky.lasts(sky.aWhile(), `machine ${machine.number} is off`, () => {
    sky.off.delete(machine);
    if (machine.isWanted && !machine.isOn) machine.start();
  });
}
