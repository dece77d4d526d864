import { type Ballot, type GroupKey, groupNumber, type NodeId } from '@webdfs/base';
import type { MapSnapshot } from '@webdfs/cluster';
import type { SimulatedCluster } from './simulated-cluster.ts';
import { Violation } from './simulated-client.ts';

/** How many happenings between two looks at all nodes. */
const LOOK_EVERY = 16;

/**
 * What must hold at every instant, as one sees it who sees all nodes and the newest map. The names are those of
 * docs/internals/replication.md.
 */
export class Invariants {
  readonly #cluster: SimulatedCluster;
  readonly #ballots = new Map<number, Ballot>();
  /** What a ballot of a group meant when it was seen first. */
  readonly #meanings = new Map<string, string>();
  /** The highest commit point that a serving primary showed, by group. */
  readonly #committed = new Map<number, number>();
  /** Nodes whose disks are harmed behind their back: they may lack what they had. */
  readonly harmed = new Set<NodeId>();
  #lastLook = 0;
  looks = 0;

  constructor(cluster: SimulatedCluster) {
    this.#cluster = cluster;
    this.#onMap(cluster.view);
    cluster.onMapChange((view) => this.#onMap(view));
  }

  /** Called between happenings. @throws Violation */
  look(): void {
    const { time } = this.#cluster;
    if (time.happened - this.#lastLook < LOOK_EVERY) return;
    this.#lastLook = time.happened;
    this.looks += 1;
    for (const key of this.#cluster.groups()) {
      this.#oneServes(key);
      this.#membersHold(key);
    }
  }

  /** S1: ballots never go back, and one ballot means one thing. */
  #onMap(view: MapSnapshot): void {
    for (const key of this.#cluster.groups()) {
      const { ballot, inSync, primary } = view.group(key);
      if (primary === undefined) continue;
      const number = groupNumber(key);
      const before = this.#ballots.get(number) ?? 0;
      if (ballot < before) {
        this.#cluster.broken(new Violation(`S1: ballot of group ${key.group} went from ${before} to ${ballot}`));
      }
      this.#ballots.set(number, ballot);
      const name = `${number} ${ballot}`;
      const meaning = `${inSync.join()} ${view.live(primary)?.session}`;
      const known = this.#meanings.get(name) ?? meaning;
      if (known !== meaning) {
        this.#cluster.broken(new Violation(`S1: ballot ${ballot} of group ${key.group}: ${known}, now ${meaning}`));
      }
      this.#meanings.set(name, known);
    }
  }

  /** S2 with L7: of all nodes at most one would answer for a group now. */
  #oneServes(key: GroupKey): void {
    let serving: NodeId | undefined;
    for (const { node, life, isPaused } of this.#cluster.machines) {
      if (life === undefined || isPaused || life.storage.replica.engine.serving(key) === 0) continue;
      if (serving !== undefined) throw new Violation(`S2: nodes ${serving} and ${node} both serve group ${key.group}`);
      serving = node;
      const { commit } = life.storage.store.log(key);
      const number = groupNumber(key);
      this.#committed.set(number, Math.max(this.#committed.get(number) ?? 0, commit));
    }
  }

  /** S3: who is in sync or eligible by the newest map holds all that was committed. */
  #membersHold(key: GroupKey): void {
    const { inSync, eligible } = this.#cluster.view.group(key);
    const committed = this.#committed.get(groupNumber(key)) ?? 0;
    for (const node of [...inSync, ...eligible]) {
      const { life } = this.#cluster.machine(node);
      if (life === undefined || this.harmed.has(node)) continue;
      const { last } = life.storage.store.log(key);
      if (last < committed) {
        throw new Violation(`S3: node ${node} has ${last} of ${committed} entries of group ${key.group}`);
      }
    }
  }
}
