import { crc32c, type SeededRandom, utf8 } from '@webdfs/base';
import { DISK_FAULTS, diskFaults } from './disk-faults.ts';
import type { Invariants } from './invariants.ts';
import { Lines } from './lines.ts';
import type { SimulatedMachine } from './machine.ts';
import { MACHINE_FAULTS, machineFaults } from './machine-faults.ts';
import { MAP_FAULTS, mapFaults } from './map-faults.ts';
import { NETWORK_FAULTS, networkFaults } from './network-faults.ts';
import { Operator } from './operator.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';
import type { Blow, Sky } from './sky.ts';

/** What may befall a cluster. */
export const FAULTS = [...MACHINE_FAULTS, ...NETWORK_FAULTS, ...MAP_FAULTS, ...DISK_FAULTS, 'rescale'] as const;
export type Fault = (typeof FAULTS)[number];

/** Those that damage what is on a disk for good: they befall one node of a run only, as its copies are what all rely on. */
const HARMFUL: ReadonlySet<Fault> = new Set(['bit-flips', 'new-disk', 'old-disk']);

/**
 * The kinds of faults of a run. A few at a time go deeper than all at once; each is in or out by itself, so that a kind
 * that comes to be leaves the others of a seed as they were.
 * Source: Groce et al., "Swarm Testing", ISSTA 2012.
 */
export function someFaults(seed: number): readonly Fault[] {
  const some = FAULTS.filter((name) => crc32c(utf8(`${seed} ${name}`)) % 4 === 0);
  return some.length === 0 ? ['kill', 'power'] : some;
}

export interface WeatherOptions {
  readonly cluster: SimulatedCluster;
  readonly invariants: Invariants;
  readonly random: SeededRandom;
  readonly faults: readonly Fault[];
  /** Mean time between two faults. */
  readonly everyMs: number;
}

/**
 * Bad weather over a cluster: now and then something befalls a machine, a line or the map store, lasts for a while, and
 * passes; and somebody changes the topology. Nothing it does lies beyond what the protocol promises to survive.
 */
export class Weather {
  readonly #options: WeatherOptions;
  readonly #cluster: SimulatedCluster;
  readonly #random: SeededRandom;
  readonly #operator: Operator;
  readonly #blows: Readonly<Record<Fault, Blow>>;
  /** The one machine whose disk may be harmed. */
  readonly #victim: SimulatedMachine;
  readonly #off = new Set<SimulatedMachine>();
  /** What is bad now, and how it passes. */
  readonly #lasting = new Set<() => void>();
  readonly counts: Partial<Record<Fault, number>> = {};
  #over = false;

  constructor(options: WeatherOptions) {
    const { cluster, invariants, random } = options;
    this.#options = options;
    this.#cluster = cluster;
    this.#random = random;
    this.#victim = this.#aMachine();
    this.#operator = new Operator(cluster, random);
    const sky: Sky = {
      cluster,
      invariants,
      random,
      lines: new Lines(cluster.network),
      off: this.#off,
      isOver: () => this.#over,
      lasts: (ms, what, pass) => this.#lasts(ms, what, pass),
      aWhile: () => this.#aWhile(),
    };
    this.#blows = {
      ...machineFaults(sky),
      ...networkFaults(sky),
      ...mapFaults(sky),
      ...diskFaults(sky),
      rescale: () => this.#operator.act(),
    };
  }

  /** Until `clear`. */
  begin(): void {
    const { everyMs, faults } = this.#options;
    if (faults.length === 0) return;
    const ms = everyMs * (0.2 + 1.6 * this.#random.fraction());
    this.#cluster.clock.after(ms, () => {
      if (this.#over) return;
      this.#strike(faults[this.#random.below(faults.length)]!);
      this.begin();
    });
  }

  /** It clears up: whatever lasts passes now, every machine runs, and the operator brings what was begun to an end. */
  async clear(): Promise<void> {
    this.#over = true;
    this.#off.clear();
    for (const pass of this.#lasting) pass();
    for (const machine of this.#cluster.machines) {
      machine.fate = undefined;
      machine.resume();
      machine.clock.drift(1);
    }
    if (this.#options.faults.includes('rescale')) await this.#operator.finish();
    this.revive();
  }

  /** A process that ended itself is started again, as a supervisor does. */
  revive(): void {
    for (const machine of this.#cluster.allMachines) {
      if (machine.isWanted && !machine.isOn && !this.#off.has(machine)) machine.start();
    }
  }

  #aMachine(): SimulatedMachine {
    const { machines } = this.#cluster;
    return machines[this.#random.below(machines.length)]!;
  }

  #lasts(ms: number, what: string, pass: () => void): void {
    const end = (): void => {
      if (!this.#lasting.delete(end)) return;
      timer.cancel();
      this.#cluster.tell(`weather: ${what} is over`);
      pass();
    };
    const timer = this.#cluster.clock.after(ms, end);
    this.#lasting.add(end);
    this.#cluster.tell(`weather: ${what} for ${Math.round(ms)} ms`);
  }

  #aWhile(): number {
    const fraction = this.#random.fraction();
    return this.#random.below(3) === 0 ? 3_000 + 7_000 * fraction : 20 + 1_500 * fraction;
  }

  #strike(fault: Fault): void {
    const machine = HARMFUL.has(fault) ? this.#victim : this.#aMachine();
    // the victim may have been taken out of the cluster
    if (!machine.isPlaced) return;
    this.counts[fault] = (this.counts[fault] ?? 0) + 1;
    this.#cluster.time.noteText(fault);
    this.#blows[fault](machine);
  }
}
