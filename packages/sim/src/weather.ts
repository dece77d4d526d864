import type { NodeId, SeededRandom } from '@webdfs/base';
import type { DiskAction, SimulatedDisk } from '@webdfs/base/testing';
import { formatDocument, MAP_KEY } from '@webdfs/cluster';
import { calibrate } from '@webdfs/placement';
import type { Invariants } from './invariants.ts';
import type { SimulatedMachine } from './machine.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';

/** What may befall a cluster. */
export const FAULTS = [
  'kill',
  'power',
  'blackout',
  'pause',
  'sleep',
  'partition',
  'one-way',
  'isolate',
  'drop',
  'delay',
  'map-away',
  'map-outage',
  'watch-stuck',
  'sync-fails',
  'write-fails',
  'read-fails',
  'short-writes',
  'full-disk',
  'bit-flips',
  'new-disk',
  'old-disk',
  'reweigh',
  'drift',
  'jump',
] as const;
export type Fault = (typeof FAULTS)[number];

/** Those that damage what is on a disk for good: they befall one node of a run only, as its copies are what all rely on. */
const HARMFUL: ReadonlySet<Fault> = new Set(['bit-flips', 'new-disk', 'old-disk']);

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
 * passes. Nothing it does lies beyond what the protocol promises to survive.
 */
export class Weather {
  readonly #options: WeatherOptions;
  readonly #cluster: SimulatedCluster;
  readonly #random: SeededRandom;
  /** The one node whose disk may be harmed. */
  readonly #victim: SimulatedMachine;
  /** Machines that are off, and will be switched on. */
  readonly #off = new Set<NodeId>();
  /** Several things may block one line; it opens when the last of them has passed. */
  readonly #blocked = new Map<string, number>();
  /** What is bad now, and how it passes. */
  readonly #lasting = new Set<() => void>();
  readonly counts: Partial<Record<Fault, number>> = {};
  #over = false;

  constructor(options: WeatherOptions) {
    this.#options = options;
    this.#cluster = options.cluster;
    this.#random = options.random;
    this.#victim = this.#aMachine();
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

  /** It clears up: whatever lasts passes now, and every machine runs. */
  clear(): void {
    this.#over = true;
    this.#off.clear();
    for (const pass of this.#lasting) pass();
    for (const machine of this.#cluster.machines) {
      machine.fate = undefined;
      machine.resume();
      machine.clock.drift(1);
      if (!machine.isOn) machine.start();
    }
  }

  #aMachine(): SimulatedMachine {
    const { machines } = this.#cluster;
    return machines[this.#random.below(machines.length)]!;
  }

  /** Something lasts `ms`, then passes; or earlier, when it clears up. */
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

  /** Mostly short, at times longer than every time-out. */
  #aWhile(): number {
    const fraction = this.#random.fraction();
    return this.#random.below(3) === 0 ? 3_000 + 7_000 * fraction : 20 + 1_500 * fraction;
  }

  #strike(fault: Fault): void {
    const machine = HARMFUL.has(fault) ? this.#victim : this.#aMachine();
    this.counts[fault] = (this.counts[fault] ?? 0) + 1;
    this.#cluster.time.noteText(fault);
    this.#blows[fault](machine);
  }

  readonly #blows: Readonly<Record<Fault, (machine: SimulatedMachine) => void>> = {
    kill: (machine) => this.#stop(machine, 'kill'),
    power: (machine) => this.#stop(machine, 'power'),
    blackout: () => {
      for (const machine of this.#cluster.machines) this.#stop(machine, 'power');
    },
    pause: (machine) => this.#pause(machine, false),
    sleep: (machine) => this.#pause(machine, true),
    partition: (machine) => this.#cutOff(machine, 'partition'),
    'one-way': (machine) => this.#cutOff(machine, 'one-way'),
    isolate: (machine) => this.#cutOff(machine, 'isolate'),
    drop: (machine) => this.#drop(machine),
    delay: (machine) => this.#delay(machine),
    'map-away': (machine) => this.#mapTrouble([machine]),
    'map-outage': () => this.#mapTrouble(this.#cluster.machines),
    'watch-stuck': (machine) => this.#watchStuck(machine),
    'sync-fails': (machine) => this.#diskTrouble(machine, ['datasync', 'sync'], 'fail'),
    'write-fails': (machine) => this.#diskTrouble(machine, ['writev', 'writevSync'], 'fail'),
    'read-fails': (machine) => this.#diskTrouble(machine, ['read', 'readSync'], 'fail'),
    'short-writes': (machine) => this.#diskTrouble(machine, ['writev', 'writevSync'], 'short'),
    'full-disk': (machine) => this.#fill(machine),
    'bit-flips': (machine) => this.#flip(machine),
    'new-disk': (machine) => this.#replaceDisk(machine),
    'old-disk': (machine) => this.#putBack(machine),
    reweigh: () => this.#reweigh(),
    drift: (machine) => this.#drift(machine),
    jump: (machine) => this.#jump(machine),
  };

  // ---- machines ----

  #stop(machine: SimulatedMachine, how: 'kill' | 'power'): void {
    if (!machine.isOn) return;
    this.#cluster.tell(`weather: ${how} of node ${machine.node}`);
    machine.crash(how);
    this.#startLater(machine);
  }

  #startLater(machine: SimulatedMachine): void {
    this.#off.add(machine.node);
    this.#lasts(this.#aWhile(), `node ${machine.node} is off`, () => {
      this.#off.delete(machine.node);
      if (!machine.isOn) machine.start();
    });
  }

  /** A process that ended itself is started again, as a supervisor does. */
  revive(): void {
    for (const machine of this.#cluster.machines) {
      if (!machine.isOn && !this.#off.has(machine.node)) machine.start();
    }
  }

  #pause(machine: SimulatedMachine, asleep: boolean): void {
    if (!machine.isOn || machine.isPaused) return;
    machine.pause(asleep);
    const others = this.#cluster.machines.filter(({ node }) => node !== machine.node);
    for (const { node } of others) this.#block(node, machine.node);
    this.#lasts(this.#aWhile(), `node ${machine.node} ${asleep ? 'sleeps' : 'stands still'}`, () => {
      machine.resume();
      for (const { node } of others) this.#unblock(node, machine.node);
    });
  }

  #jump(machine: SimulatedMachine): void {
    const ms = (this.#random.below(2) === 0 ? -1 : 1) * (this.#random.below(3) === 0 ? 3_600_000 : 2_500);
    this.#cluster.tell(`weather: wall clock of node ${machine.node} jumps ${ms} ms`);
    machine.clock.jump(ms);
  }

  #drift(machine: SimulatedMachine): void {
    // a lease's margin allows for one part in a hundred
    const rate = 0.992 + 0.016 * this.#random.fraction();
    machine.clock.drift(rate);
    this.#lasts(10_000, `clock of node ${machine.node} runs at ${rate.toFixed(4)}`, () => machine.clock.drift(1));
  }

  // ---- the network ----

  #block(from: NodeId, to: NodeId): void {
    const name = `${from}>${to}`;
    this.#blocked.set(name, (this.#blocked.get(name) ?? 0) + 1);
    this.#cluster.network.partitionOneWay(from, to);
  }

  #unblock(from: NodeId, to: NodeId): void {
    const name = `${from}>${to}`;
    this.#blocked.set(name, this.#blocked.get(name)! - 1);
    this.#reopen(from, to);
  }

  #reopen(a: NodeId, b: NodeId): void {
    this.#cluster.network.heal(a, b);
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      if ((this.#blocked.get(`${from}>${to}`) ?? 0) > 0) this.#cluster.network.partitionOneWay(from, to);
    }
  }

  #cutOff(machine: SimulatedMachine, fault: 'partition' | 'one-way' | 'isolate'): void {
    const others = this.#cluster.machines.filter(({ node }) => node !== machine.node);
    const from = fault === 'isolate' ? others : [others[this.#random.below(others.length)]!];
    const both = fault !== 'one-way';
    const lines = from.flatMap(({ node }): [NodeId, NodeId][] => [
      [machine.node, node],
      ...(both ? [[node, machine.node] as [NodeId, NodeId]] : []),
    ]);
    for (const [a, b] of lines) this.#block(a, b);
    const withMap = fault === 'isolate' && this.#random.below(2) === 0;
    if (withMap) machine.road.requestsLost = machine.road.answersLost = true;
    const names = from.map(({ node }) => node).join(', ');
    const what = `node ${machine.node} is cut off from ${names}${both ? '' : ', one way'}${withMap ? ' and the map' : ''}`;
    this.#lasts(this.#aWhile(), what, () => {
      for (const [a, b] of lines) this.#unblock(a, b);
      if (withMap) machine.road.requestsLost = machine.road.answersLost = false;
    });
  }

  #drop({ node: dropped }: SimulatedMachine): void {
    this.#cluster.tell(`weather: connections of node ${dropped} are cut`);
    for (const { node } of this.#cluster.machines) if (node !== dropped) this.#cluster.network.drop(dropped, node);
  }

  #delay({ node: slow }: SimulatedMachine): void {
    const others = this.#cluster.machines.filter(({ node }) => node !== slow);
    const ms = this.#random.below(2) === 0 ? 20 : 400 * this.#random.fraction();
    for (const { node } of others) this.#cluster.network.delay(slow, node, ms);
    this.#lasts(this.#aWhile(), `lines of node ${slow} take ${Math.round(ms)} ms`, () => {
      for (const { node } of others) this.#cluster.network.delay(slow, node, this.#random.fraction());
    });
  }

  // ---- the map store ----

  #mapTrouble(machines: readonly SimulatedMachine[]): void {
    const dice = this.#random.below(3);
    const [requests, answers] = [dice !== 1, dice !== 0];
    const set = (isLost: boolean): void => {
      for (const { road } of machines) {
        road.requestsLost = isLost && requests;
        road.answersLost = isLost && answers;
      }
    };
    set(true);
    const who = machines.map(({ node }) => node).join(', ');
    this.#lasts(this.#aWhile(), `no ${requests ? 'requests' : 'answers'} of the map, nodes ${who},`, () => set(false));
  }

  #watchStuck({ node, road }: SimulatedMachine): void {
    road.watchStuck = true;
    this.#lasts(this.#aWhile(), `no changes of the map, node ${node},`, () => {
      road.watchStuck = false;
    });
  }

  // ---- disks ----

  #fill(machine: SimulatedMachine): void {
    let used = 0;
    for (const [, inode] of machine.disk.files()) used += inode.size;
    machine.disk.limit(used + this.#random.below(120_000));
    this.#lasts(this.#aWhile(), `the disk of node ${machine.node} is full`, () => machine.disk.limit(2 ** 26));
  }

  #diskTrouble(machine: SimulatedMachine, actions: readonly DiskAction[], fate: 'fail' | 'short'): void {
    let left = fate === 'short' ? 20 : 1;
    machine.fate = ({ action }) => {
      if (left === 0 || !actions.includes(action) || this.#random.below(3) > 0) return undefined;
      left -= 1;
      return fate;
    };
    this.#cluster.tell(`weather: ${actions.join(', ')}: ${fate}, at node ${machine.node}`);
  }

  #replaceDisk(machine: SimulatedMachine, copy?: SimulatedDisk): void {
    this.#options.invariants.harmed.add(machine.node);
    machine.crash('power');
    this.#cluster.tell(`weather: node ${machine.node} gets ${copy === undefined ? 'an empty disk' : 'an old disk'}`);
    machine.replaceDisk(copy);
    if (!this.#off.has(machine.node)) this.#startLater(machine);
  }

  /** A snapshot of the disk is made, and put back a while later. */
  #putBack(machine: SimulatedMachine): void {
    // what is being opened has no whole state to go back to
    if (machine.life === undefined) return;
    const copy = machine.copyDisk();
    this.#cluster.tell(`weather: a snapshot is made of node ${machine.node}`);
    this.#cluster.clock.after(this.#aWhile(), () => {
      if (!this.#over) this.#replaceDisk(machine, copy);
    });
  }

  // ---- the cluster ----

  /** Every node weighs something else; a change that is under way is replaced, or given up. */
  #reweigh(): void {
    const { map, mapRevision } = this.#cluster.view;
    const { target: _, ...rest } = map;
    const subclusters = map.settled.subclusters.map((subcluster) => ({
      ...subcluster,
      nodes: subcluster.nodes.map((node) => ({ ...node, weight: 32_768 * (1 + this.#random.below(6)) })),
    }));
    const isAborted = map.target !== undefined && this.#random.below(3) === 0;
    const next = isAborted ? rest : { ...map, target: calibrate({ ...map.settled, subclusters }) };
    this.#cluster.tell(`weather: ${isAborted ? 'the move is given up' : 'nodes weigh something else'}`);
    void this.#cluster.mapStore.transact({
      compare: [{ type: 'modified', key: MAP_KEY, is: mapRevision }],
      write: [{ type: 'put', key: MAP_KEY, value: formatDocument(next) }],
    });
  }

  #flip(machine: SimulatedMachine): void {
    this.#options.invariants.harmed.add(machine.node);
    const volumes = [...machine.disk.files()].filter(([path, { size }]) => path.endsWith('.vol') && size > 64);
    for (let i = 0; i < 1 + this.#random.below(4); i++) {
      const volume = volumes[this.#random.below(volumes.length)];
      if (volume === undefined) return;
      const [path, inode] = volume;
      const offset = this.#random.below(inode.size);
      inode.flip(offset, this.#random.below(8));
      this.#cluster.tell(`weather: a bit turns over in ${path} of node ${machine.node}, at ${offset}`);
    }
  }
}
