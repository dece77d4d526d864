import { type NodeId, type SeededRandom, WebdfsError } from '@webdfs/base';
import {
  newNodesOf,
  proposeAbort,
  proposePause,
  proposeTarget,
  type Transaction,
  type WaitingFolder,
  waitingFolders,
} from '@webdfs/cluster';
import { changeTopology, PlacementError, type Topology, type TopologyChange, UNIT_WEIGHT } from '@webdfs/placement';
import type { SimulatedMachine } from './machine.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';

/** What an operator may do to the topology. */
const ERRANDS = ['add', 'drain', 'remove', 'replace', 'reweigh', 'abort', 'pause', 'resume'] as const;
type Errand = (typeof ERRANDS)[number];

/** How long folders may take to ask for their places before the operator goes about something else. */
const PATIENCE_MS = 12_000;
const LOOK_MS = 200;
/** So soon, at most, it thinks better of a change: learners have begun and are not done. */
const MIDWAY_MS = 60;
/** Weights, in units of half a node's. */
const MOST_WEIGHT = 6;

/**
 * Somebody who changes where groups lie while all else goes on: adds machines, drains, removes and replaces nodes, gives them
 * other weights, pauses, resumes and gives up what is under way, and thinks better of it midway. Every change is one that
 * `webdfs cluster` makes, by the same functions; machines are switched on before their nodes are added, and switched off and
 * wiped once the map has no place for them any more.
 */
export class Operator {
  readonly #cluster: SimulatedCluster;
  readonly #random: SeededRandom;
  #isBusy = false;
  /** No new machines from now on. */
  #isOver = false;
  readonly counts: Partial<Record<Errand, number>> = {};

  constructor(cluster: SimulatedCluster, random: SeededRandom) {
    this.#cluster = cluster;
    this.#random = random;
    cluster.onMapChange(() => this.#retireSoon());
  }

  /** Does something, unless it is still about the last. */
  act(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    void this.#some()
      .catch((error: unknown) => this.#cluster.broken(error))
      .finally(() => {
        this.#isBusy = false;
      });
  }

  /** A change; and at times others while its groups are on their way. */
  async #some(): Promise<void> {
    do {
      await this.#go(this.#anErrand());
      await new Promise<void>(
        (resolve) => void this.#cluster.clock.after(MIDWAY_MS * this.#random.fraction(), resolve),
      );
    } while (!this.#isOver && this.#random.below(2) === 0);
  }

  #anErrand(): Errand {
    const { map } = this.#cluster.view;
    const possible = ERRANDS.filter((errand) => {
      if (errand === 'abort') return map.target !== undefined;
      if (errand === 'pause') return map.paused !== true;
      return errand !== 'resume' || map.paused === true;
    });
    return possible[this.#random.below(possible.length)]!;
  }

  /** The weather is good: nothing is paused any more, and half of the time there is a last change, or one is given up. */
  async finish(): Promise<void> {
    this.#isOver = true;
    await this.#transact('resume', () => proposePause(this.#cluster.view, false));
    const last = [undefined, undefined, 'drain', 'remove', 'reweigh', 'abort'] as const;
    const errand = last[this.#random.below(last.length)];
    if (errand !== undefined) await this.#go(errand);
    for (const machine of this.#cluster.allMachines)
      if (!machine.isPlaced && !this.#hasPlace(machine)) machine.retire();
  }

  /** By the map, though it may not have heard of it. */
  #hasPlace({ storeId }: SimulatedMachine): boolean {
    const { view } = this.#cluster;
    return storeId !== undefined && view.nodes().some((node) => view.disk(node)?.id === storeId);
  }

  async #go(errand: Errand): Promise<void> {
    const { view } = this.#cluster;
    this.counts[errand] = (this.counts[errand] ?? 0) + 1;
    switch (errand) {
      case 'abort':
        return await this.#transact(errand, () => proposeAbort(this.#cluster.view));
      case 'pause':
      case 'resume':
        return await this.#transact(errand, () => proposePause(view, errand === 'pause'));
      case 'add':
      case 'replace':
        return await this.#withFolders(errand);
      case 'drain':
      case 'remove':
      case 'reweigh':
        return await this.#change(errand, [this.#changeOf(errand)], []);
    }
  }

  get #present(): Topology {
    const { map } = this.#cluster.view;
    return map.target ?? map.settled;
  }

  #aNode(): NodeId {
    const nodes = this.#present.subclusters.flatMap((subcluster) => subcluster.nodes);
    return nodes[this.#random.below(nodes.length)]!.id as NodeId;
  }

  #changeOf(errand: 'drain' | 'remove' | 'reweigh'): TopologyChange {
    const nodes = { by: 'id', ids: [this.#aNode()] } as const;
    if (errand !== 'reweigh') return { type: errand, nodes };
    return { type: 'reweight', nodes, weight: (UNIT_WEIGHT / 2) * (1 + this.#random.below(MOST_WEIGHT)) };
  }

  // ---- machines that come ----

  async #withFolders(errand: 'add' | 'replace'): Promise<void> {
    const count = errand === 'add' ? 1 + this.#random.below(2) : 1;
    const spare = this.#cluster.allMachines.filter(({ isPlaced }) => !isPlaced).slice(0, count);
    if (spare.length === 0) return;
    for (const machine of spare) {
      machine.isWanted = true;
      if (!machine.isOn) machine.start();
    }
    const folders = await this.#foldersOf(spare.length);
    if (this.#isOver || folders.length === 0) return;
    const { subclusters } = this.#present;
    const labels = {};
    const weight = UNIT_WEIGHT;
    const add: TopologyChange =
      this.#random.below(3) === 0
        ? { type: 'add-subcluster', count: folders.length, weight, labels }
        : { type: 'add-nodes', subcluster: subclusters[0]!.id, count: folders.length, weight, labels };
    const remove = { type: 'remove', nodes: { by: 'id', ids: [this.#aNode()] } } as const;
    await this.#change(errand, errand === 'add' ? [add] : [add, remove], folders);
  }

  async #foldersOf(count: number): Promise<readonly WaitingFolder[]> {
    const { clock } = this.#cluster;
    const until = clock.monotonic() + PATIENCE_MS;
    for (;;) {
      const folders = waitingFolders(await this.#cluster.mapStore.read());
      if (folders.length >= count || this.#isOver || clock.monotonic() > until) return folders.slice(0, count);
      await new Promise<void>((resolve) => void clock.after(LOOK_MS, resolve));
    }
  }

  // ---- changes ----

  async #change(errand: Errand, changes: readonly TopologyChange[], folders: readonly WaitingFolder[]): Promise<void> {
    const words = changes.map((change) => JSON.stringify(change)).join(' ');
    await this.#transact(`${errand} ${words}`, () => {
      const { view } = this.#cluster;
      const target = changeTopology(this.#present, changes, { groupBits: view.map.groupBits });
      this.#checkIds(newNodesOf(view, target));
      return proposeTarget(view, target, { folders });
    });
  }

  /** A machine that played a node until a while ago, and may come back, is switched off before another has its id. */
  #checkIds(added: readonly NodeId[]): void {
    const taken = added.find((node) => this.#cluster.machine(node) !== undefined);
    if (taken !== undefined) throw new WebdfsError('INVALID', `the machine of node ${taken} is not switched off yet`);
  }

  async #transact(what: string, propose: () => Transaction): Promise<void> {
    let outcome: string;
    try {
      const { done } = await this.#cluster.mapStore.transact(propose());
      outcome = done ? 'done' : 'somebody was faster';
    } catch (error) {
      // such as a cluster that would be too small, or an id that is taken still
      if (!(error instanceof WebdfsError || error instanceof PlacementError)) throw error;
      outcome = error.message;
    }
    this.#cluster.time.noteText(outcome);
    this.#cluster.tell(`operator: ${what}: ${outcome}`);
  }

  // ---- machines that go ----

  #retireSoon(): void {
    for (const machine of this.#cluster.machines) {
      if (this.#isSuperfluous(machine)) {
        const { node } = machine;
        this.#cluster.clock.after(100 + this.#random.below(3_000), () => {
          if (!machine.isPlaced || machine.node !== node || !this.#isSuperfluous(machine)) return;
          this.#cluster.tell(`operator: node ${node} is switched off, the map has no place for it`);
          machine.retire();
        });
      }
    }
  }

  #isSuperfluous(machine: SimulatedMachine): boolean {
    return !this.#cluster.view.nodes().includes(machine.node);
  }
}
