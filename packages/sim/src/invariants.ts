import { type Ballot, type GroupKey, groupNumber, type NodeId } from '@webdfs/base';
import type { GroupView, MapSnapshot } from '@webdfs/cluster';
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
  /** Each group as the map before showed it. */
  readonly #before = new Map<number, GroupView>();
  readonly #isCalm: boolean;
  /** Nodes whose disks are harmed behind their back: they may lack what they had. */
  readonly harmed = new Set<NodeId>();
  readonly #flipped = new Set<NodeId>();
  #lastLook = 0;
  looks = 0;

  /** @param isCalm  no member is ever dropped, as nothing befalls one */
  constructor(cluster: SimulatedCluster, { isCalm }: { readonly isCalm: boolean }) {
    this.#cluster = cluster;
    this.#isCalm = isCalm;
    this.#onMap(cluster.view);
    cluster.onMapChange((view) => this.#onMap(view));
  }

  /** Bits are turned over on a node's disk. */
  flips(node: NodeId): void {
    this.harmed.add(node);
    this.#flipped.add(node);
  }

  hasFlips(node: number): boolean {
    return this.#flipped.has(node as NodeId);
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
      const number = groupNumber(key);
      const group = view.group(key);
      this.#copiesStay(key, this.#before.get(number), group);
      this.#before.set(number, group);
      const { ballot, inSync, primary } = group;
      if (primary === undefined) continue;
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

  /**
   * S7: a change of members that adds or reorders some never leaves fewer copies than there were and should be; a member
   * alone is taken off by a drop only, which leaves `minCopies`, and only where something befell it.
   */
  #copiesStay(key: GroupKey, before: GroupView | undefined, after: GroupView): void {
    if (before === undefined) return;
    const floor = Math.min(before.inSync.length, after.copies);
    if (after.inSync.length >= floor) return;
    // a mark takes a member away without any change of members
    if (before.configRevision === after.configRevision && !this.#isCalm) return;
    const kept = before.inSync.filter((node) => after.members.includes(node));
    const isDrop = after.members.length === kept.length && before.inSync.length === kept.length + 1;
    if (isDrop && kept.length >= after.minCopies && !this.#isCalm) return;
    const change = `${before.inSync.join()} became ${after.inSync.join()} (${after.members.join()})`;
    this.#cluster.broken(new Violation(`S7: group ${key.group} has fewer copies: ${change}`));
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
      const life = this.#cluster.machine(node)?.life;
      if (life === undefined || this.harmed.has(node)) continue;
      const { last } = life.storage.store.log(key);
      if (last < committed) {
        throw new Violation(`S3: node ${node} has ${last} of ${committed} entries of group ${key.group}`);
      }
    }
  }
}
