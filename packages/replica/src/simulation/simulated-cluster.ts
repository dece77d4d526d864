import { assert, asNodeId, type NodeId, type Revision, SeededRandom, WebdfsError } from '@webdfs/base';
import type { MapSnapshot } from '@webdfs/cluster';
import { propose } from '@webdfs/cluster';
import type { Effect, Outcome } from '../events.ts';
import type { ProtocolMessage } from '../messages.ts';
import { REPLICA_DEFAULTS, type ReplicaParameters } from '../parameters.ts';
import { Checks } from './checks.ts';
import { GROUP, KEPT, type Rules } from './rules.ts';
import { SIMULATED_KEYS, SimulatedClient, simulatedKey } from './simulated-client.ts';
import { SimulatedMap } from './simulated-map.ts';
import { SimulatedNode, type World } from './simulated-node.ts';

export interface SimulationOptions {
  readonly seed: number;
  readonly nodes?: number;
  readonly clients?: number;
  /** Odds of faults, 0 none, 1 the usual. */
  readonly faults?: number;
  readonly rules?: Partial<Rules>;
  /** Bad days of one kind: primaries are cut off, and soon accused. */
  readonly cutOffs?: boolean;
}

/** A learner that has the past. */
interface Ready {
  readonly primary: SimulatedNode;
  readonly learner: SimulatedNode;
  readonly ballot: number;
  readonly run: number;
  readonly session: Revision;
}

interface Post {
  readonly from: NodeId;
  readonly session: Revision;
  readonly to: NodeId;
  readonly message: ProtocolMessage;
}

const MAX_POSTS = 400;

/**
 * A whole cluster with one group in one process, driven by a seed: posts are lost, delayed, doubled and overtaken, maps lag,
 * disks sync when they like, nodes crash, lose their disks, their leases and their good name. After each event all
 * invariants are checked. The same seed gives the same run.
 */
export class SimulatedCluster implements World {
  readonly parameters: ReplicaParameters;
  readonly rules: Rules;
  readonly checks = new Checks();
  readonly map = new SimulatedMap();
  readonly nodes: SimulatedNode[] = [];
  readonly #random: SeededRandom;
  readonly #faults: number;
  readonly #cutOffs: boolean;
  readonly #clients: SimulatedClient[] = [];
  #now = 1_000_000;
  #posts: Post[] = [];
  #later: { node: SimulatedNode; run: number; what: () => void }[] = [];
  #transactions: { node: SimulatedNode; run: number; effect: Extract<Effect, { type: 'transact' }> }[] = [];
  #ready: Ready[] = [];
  readonly #asked = new Map<number, SimulatedClient>();
  #ticket = 0;
  #complaints = new Set<NodeId>();
  events = 0;
  readonly counts = { crashes: 0, cutOff: 0, wiped: 0, accused: 0, joined: 0, dropped: 0, restored: 0 };

  constructor(options: SimulationOptions) {
    this.#random = new SeededRandom(options.seed);
    this.#faults = options.faults ?? 1;
    this.#cutOffs = options.cutOffs ?? false;
    this.rules = { ...KEPT, ...options.rules };
    this.parameters = { ...REPLICA_DEFAULTS, windowEntries: 8, learnerEntries: 16 };
    if (this.rules.noFence) this.parameters = { ...this.parameters, leaseMs: 0, marginMs: 0 };
    const count = options.nodes ?? 4;
    this.map.found(count);
    for (let id = 1; id <= count; id++) this.nodes.push(new SimulatedNode(asNodeId(id), this));
    for (let i = 0; i < (options.clients ?? 3); i++) {
      this.#clients.push(new SimulatedClient(i, options.seed + 1_000_003 * (i + 1)));
    }
    for (const node of this.nodes) this.#start(node);
  }

  now(): number {
    return this.#now;
  }

  snapshot(revision: Revision): MapSnapshot {
    return this.map.at(revision);
  }

  newestRevision(): Revision {
    return this.map.revision;
  }

  post(from: SimulatedNode, to: NodeId, message: ProtocolMessage): void {
    if (this.#chance(0.03) || from.isCutOffFrom('everybody')) return;
    if (this.#posts.length >= MAX_POSTS) this.#posts.splice(this.#random.below(this.#posts.length), 1);
    this.#posts.push({ from: from.id, session: from.session, to, message });
  }

  answer(node: SimulatedNode, ticket: number, outcome: Outcome): void {
    const client = this.#asked.get(ticket);
    this.#asked.delete(ticket);
    const operation = client?.operation;
    if (client === undefined || operation === undefined || operation.ticket !== ticket) return;
    // Said, and lost on its way: the client asks again with the same id.
    if (this.#chance(0.05)) return;
    if (outcome.type === 'refused') return client.refused(outcome.error, this.#now);
    const { sequence } = outcome.answer;
    if (sequence > 0) {
      this.checks.tell(node, sequence);
      this.checks.saw(operation.request.key, sequence, operation.floor + (operation.tries > 1 ? 0 : 1));
      if (operation.kind === 'create') this.checks.created(operation.request.key, sequence);
    }
    this.checks.acknowledged++;
    client.operation = undefined;
  }

  later(node: SimulatedNode, what: () => void): void {
    this.#later.push({ node, run: node.run, what });
  }

  transact(node: SimulatedNode, effect: Extract<Effect, { type: 'transact' }>): void {
    this.#transactions.push({ node, run: node.run, effect });
  }

  fetch(node: SimulatedNode, { ballot, from, after, upTo }: Extract<Effect, { type: 'fetch' }>): void {
    this.later(node, () => {
      const holder = this.#node(from);
      const isThere = holder.isUp && !this.#chance(0.1);
      const entries = isThere ? holder.disk.entries.slice(after, upTo) : [];
      node.step({ type: 'fetched', ballot, entries, at: this.#now });
    });
  }

  notice(_: SimulatedNode, effect: Extract<Effect, { type: 'complain' | 'disk-is-old' | 'learner-lost' }>): void {
    assert(effect.type !== 'disk-is-old', 'no disk of this simulation is shortened');
    if (effect.type === 'complain') this.#complaints.add(effect.node);
  }

  /** One event. @throws BrokenInvariant when a check fails */
  step(): void {
    this.events++;
    this.#now += this.#random.below(8) === 0 ? this.#random.below(this.#cutOffs ? 80 : 300) : this.#random.below(6);
    this.#tick();
    const dice = this.#random.below(100);
    if (dice < 44) for (let n = this.#random.below(4); n >= 0; n--) this.#deliver();
    else if (dice < 62) this.#sync();
    else if (dice < 67) this.#watch();
    else if (dice < 76) this.#renew();
    else if (dice < 92) this.#act();
    else if (dice < 95) this.#doLater();
    else if (dice < 97) this.#carry();
    else if (dice < 98) this.#judge(1);
    else this.#misfortune();
    this.checks.all(this.nodes, this.map.newest.group(GROUP));
  }

  run(events: number): this {
    for (let i = 0; i < events; i++) this.step();
    return this;
  }

  /** No more faults: everybody is started, and the cluster must come to rest with all answered. */
  settle(events: number): void {
    for (const node of this.nodes) node.cutOff = { until: 0, from: 'the map' };
    for (let i = 0; i < events; i++) {
      this.#now += 20;
      for (const node of this.nodes) if (!node.isUp) this.#start(node);
      this.#tick();
      for (const node of this.nodes) {
        node.readTo(this.map.revision);
        this.#renewNode(node);
        this.#settleDisk(node, node.disk.waiting);
      }
      for (let n = this.#posts.length; n > 0; n--) this.#deliver(0);
      this.#doLater();
      this.#carry();
      this.#judge(0);
      this.#learn();
      for (const client of this.#clients) if (client.operation !== undefined) this.#ask(client);
      this.checks.all(this.nodes, this.map.newest.group(GROUP));
    }
  }

  /** Operations that are not answered. */
  get unanswered(): number {
    return this.#clients.filter(({ operation }) => operation !== undefined).length;
  }

  #chance(odds: number): boolean {
    return this.#random.fraction() < odds * this.#faults;
  }

  #node(id: NodeId): SimulatedNode {
    return this.nodes[id - 1]!;
  }

  #pick<Thing>(things: readonly Thing[]): Thing | undefined {
    return things[this.#random.below(things.length)];
  }

  #tick(): void {
    for (const node of this.nodes) {
      // Without faults nobody forgets to renew.
      if (this.#faults === 0 && this.#now >= node.renewedAt + 500) this.#renewNode(node);
      if (node.state !== undefined && node.state.wakeAt <= this.#now) node.step({ type: 'tick', at: this.#now });
      // The store ends leases by its own clock.
      const live = this.map.newest.live(node.id);
      if (live !== undefined && this.#now >= node.renewedAt + REPLICA_DEFAULTS.leaseMs)
        this.map.remove(`live/${node.id}`);
    }
  }

  #deliver(odds = 1): void {
    if (this.#posts.length === 0) return;
    // Mostly in order, sometimes not.
    const at = this.#random.below(4) < 3 ? 0 : this.#random.below(this.#posts.length);
    const [post] = this.#posts.splice(at, 1);
    if (post === undefined) return;
    if (this.#chance(0.03 * odds)) this.#posts.push(post);
    const node = this.#node(post.to);
    if (node.isUp && !node.isCutOffFrom('everybody')) node.receive(post.from, post.session, post.message);
  }

  #sync(): void {
    const node = this.#pick(this.nodes.filter(({ isUp, disk }) => isUp && !disk.isIdle));
    if (node !== undefined) this.#settleDisk(node, 1 + this.#random.below(node.disk.waiting));
  }

  #settleDisk(node: SimulatedNode, count: number): void {
    if (node.isUp) node.sync(count);
  }

  #watch(): void {
    const node = this.#pick(this.nodes.filter((each) => each.isUp && !each.isCutOffFrom('the map')));
    if (node === undefined || node.mapAt >= this.map.revision) return;
    node.readTo(node.mapAt + 1 + this.#random.below(this.map.revision - node.mapAt));
  }

  #renew(): void {
    const node = this.#pick(this.nodes.filter((each) => each.isUp && !each.isCutOffFrom('the map')));
    if (node !== undefined && !this.#chance(0.2)) this.#renewNode(node);
  }

  /** L1: the lease is renewed, and the map proved complete. */
  #renewNode(node: SimulatedNode): void {
    if (this.map.newest.live(node.id)?.session !== node.session) return this.#register(node);
    node.renewedAt = this.#now;
    node.readTo(this.map.revision);
    const { leaseMs, marginMs } = REPLICA_DEFAULTS;
    node.leaseUntil = this.rules.endlessLeases ? Infinity : this.#now + leaseMs - marginMs;
  }

  /** L8: its key is gone; it is another session now. */
  #register(node: SimulatedNode): void {
    node.session = this.map.put(`live/${node.id}`, { pid: 1, startedMs: this.#now });
    node.renewedAt = this.#now;
    node.leaseUntil = 0;
    node.readTo(this.map.revision);
    if (node.state?.primary === undefined) this.#again(node);
  }

  /** The view may make it primary only now that it knows its session. */
  #again(node: SimulatedNode): void {
    if (node.state !== undefined) node.step({ type: 'view', view: node.state.view, at: this.#now });
  }

  #start(node: SimulatedNode): void {
    const session = this.map.put(`live/${node.id}`, { pid: 1, startedMs: this.#now });
    node.renewedAt = this.#now;
    node.start(session, this.map.revision);
  }

  #act(): void {
    if (this.#random.below(3) === 0) return this.#probe();
    const client = this.#pick(this.#clients)!;
    if (client.operation === undefined) {
      client.begin(this.#now, (name) => this.checks.floorOf(simulatedKey(name)));
    }
    this.#ask(client);
  }

  #ask(client: SimulatedClient): void {
    if (!client.wants(this.#now)) return;
    const believed = this.#pick(this.nodes)!.map.group(GROUP).primary;
    const ids = this.nodes.map(({ id }) => id);
    const node = this.#node(client.choose(believed, ids));
    const ticket = ++this.#ticket;
    const request = client.asks(this.#now, ticket);
    const operation = client.operation!;
    this.#asked.set(ticket, client);
    if (operation.kind === 'read') return this.#read(client, node);
    if (!node.isUp || node.state === undefined) {
      client.refused(new WebdfsError('PEER_LOST', 'not there'), this.#now);
      return;
    }
    node.propose({ type: 'write', ticket, request, nowMs: this.#now });
  }

  #read(client: SimulatedClient, node: SimulatedNode): void {
    const { request, floor } = client.operation!;
    if (this.#readAt(node, request.key, floor)) client.operation = undefined;
    else client.refused(new WebdfsError('NOT_PRIMARY', 'not here'), this.#now);
  }

  /** A read that begins and ends now, at anybody who would answer it. */
  #probe(): void {
    const node = this.#pick(this.nodes.filter(({ state }) => state?.primary?.phase === 'serve'));
    const key = this.#pick(SIMULATED_KEYS)!;
    if (node !== undefined) this.#readAt(node, key, this.checks.floorOf(key));
  }

  /** R1 and L3, as reader.ts does it: looked up, then checked. */
  #readAt(node: SimulatedNode, key: Uint8Array, floor: number): boolean {
    const sequence = node.disk.newest(key)?.sequence ?? 0;
    if (!this.#mayAnswer(node)) return false;
    this.checks.tell(node, sequence);
    this.checks.saw(key, sequence, floor);
    this.checks.reads++;
    return true;
  }

  #mayAnswer({ state, map, holds }: SimulatedNode): boolean {
    if (state?.primary?.phase !== 'serve' || !holds) return false;
    const { primary, view } = state;
    if (map.group(GROUP).ballot !== primary.ballot) return false;
    return view.inSync.length >= view.minCopies || primary.keys.size === 0;
  }

  #doLater(): void {
    const at = this.#random.below(this.#later.length || 1);
    const [thing] = this.#later.splice(at, 1);
    if (thing !== undefined && thing.node.run === thing.run) thing.what();
  }

  #carry(): void {
    const [first] = this.#transactions.splice(this.#random.below(this.#transactions.length || 1), 1);
    if (first === undefined) return;
    const { node, run, effect } = first;
    if (node.isCutOffFrom('the map')) return void this.#transactions.push(first);
    const { ballot, id } = effect;
    const tell = (outcome: 'done' | 'failed' | 'unknown'): void => {
      if (node.run === run && node.isUp) node.step({ type: 'transaction', ballot, id, outcome, at: this.#now });
    };
    if (this.#chance(0.2)) {
      // Sent, and perhaps done; nobody hears of it, so it is sent again.
      if (this.#random.below(2) === 0) this.#count(effect, this.map.transact(effect.plan.transaction).done);
      tell('unknown');
      this.#transactions.push(first);
      return;
    }
    const { done, revision } = this.map.transact(effect.plan.transaction);
    this.#count(effect, done);
    if (node.run === run && node.isUp) node.readTo(revision);
    tell(done ? 'done' : 'failed');
  }

  #count({ plan }: Extract<Effect, { type: 'transact' }>, done: boolean): void {
    if (!done) return;
    if (plan.override.members.length < this.map.at(this.map.revision - 1).group(GROUP).inSync.length)
      this.counts.dropped++;
    else this.counts.joined++;
  }

  #misfortune(): void {
    const dice = this.#random.below(100);
    if (this.#cutOffs && dice < 60) return dice < 30 ? this.#cutOff() : this.#judge(2);
    if (dice < 16) this.#crash();
    else if (dice < 22) this.#cutOff();
    else if (dice < 46) this.#restart();
    else if (dice < 60) this.#judge(1);
    else this.#learn();
  }

  #crash(): void {
    const up = this.nodes.filter(({ isUp }) => isUp);
    const node = this.#pick(up);
    if (node === undefined || !this.#chance(up.length > 2 ? 1 : 0.4)) return;
    this.counts.crashes++;
    node.crash(this.#random.below(node.disk.waiting + 1), this.#random.fraction());
    if (this.rules.lyingDisks) node.disk.forget(1 + this.#random.below(3));
  }

  #cutOff(): void {
    const primaries = this.nodes.filter(({ state }) => state?.primary?.phase === 'serve');
    const node = this.#pick(this.#cutOffs && primaries.length > 0 ? primaries : this.nodes);
    if (node === undefined || !this.#chance(1)) return;
    this.counts.cutOff++;
    const from = this.#random.below(2) === 0 ? 'everybody' : 'the map';
    node.cutOff = { until: this.#now + 2_000 + this.#random.below(12_000), from };
    const live = this.map.newest.live(node.id);
    if (!this.#cutOffs || live === undefined || this.#random.below(2) === 0) return;
    if (this.map.newest.group(GROUP).inSync.length > 2) this.#mark(node.id, live.session);
  }

  #restart(): void {
    const node = this.#pick(this.nodes.filter(({ isUp }) => !isUp));
    if (node === undefined) return;
    // A disk is lost only where that leaves the history somewhere: else it is lost, and rightly so.
    const view = this.map.newest.group(GROUP);
    const others = [...view.inSync, ...view.eligible].filter((id) => id !== node.id);
    if (others.length > 1 && this.#chance(0.15)) this.#wipe(node);
    this.#start(node);
  }

  /** T6: a new disk comes with its own mark, in one transaction. */
  #wipe(node: SimulatedNode): void {
    this.counts.wiped++;
    node.disk.wipe();
    const down = this.map.newest.down(node.id);
    const earlier = down === undefined ? [] : [...(down.info.earlier ?? []), down.mark];
    const mark = { reason: 'new disk', session: this.map.newest.live(node.id)?.session ?? 0, earlier };
    const write = [
      { type: 'put', key: `disk/${node.id}`, value: JSON.stringify({ id: `disk ${this.events}`, founding: false }) },
      { type: 'put', key: `down/${node.id}`, value: JSON.stringify(mark) },
    ] as const;
    this.map.transact({ compare: [], write });
  }

  /** The controller: marks who is lost or accused (C2, C3), else calls back who is eligible (T7). */
  #judge(odds: number): void {
    const { newest } = this.map;
    for (const id of newest.group(GROUP).inSync) {
      const live = newest.live(id);
      if (live !== undefined && !this.#isAccused(id, odds)) continue;
      if (live !== undefined) this.counts.accused++;
      return this.#mark(id, live?.session ?? 0);
    }
    this.#complaints.clear();
    this.#restore();
  }

  #isAccused(id: NodeId, odds: number): boolean {
    const oddsOf = this.#node(id).isCutOffFrom('the map') ? 0.4 : 0.03;
    return this.#complaints.has(id) || this.#chance(oddsOf * odds);
  }

  #restore(): void {
    const { newest } = this.map;
    const view = newest.group(GROUP);
    if (view.inSync.length >= view.minCopies) return;
    const nodes = view.eligible.filter((id) => newest.live(id) !== undefined);
    if (nodes.length === 0) return;
    const controller = newest.controller()!.createRevision;
    const { transaction } = propose(newest, GROUP, { type: 'restore', controller, nodes });
    if (this.map.transact(transaction).done) this.counts.restored++;
  }

  #mark(id: NodeId, session: Revision): void {
    this.#complaints.delete(id);
    const down = this.map.newest.down(id);
    const earlier = down === undefined ? [] : [...(down.info.earlier ?? []), down.mark];
    this.map.put(`down/${id}`, { reason: 'judged', session, earlier });
  }

  /** J1–J4, without the pages: a learner gets the past at once, and is ready some time later. */
  #learn(): void {
    const ready = this.#ready.shift();
    if (ready !== undefined) return this.#offer(ready);
    const primary = this.nodes.find(({ isUp, state }) => isUp && state?.primary?.phase === 'serve');
    const { view, primary: serving } = primary?.state ?? {};
    if (primary === undefined || view === undefined || serving?.learner !== undefined) return;
    const candidates = view.goal.filter((id) => !view.inSync.includes(id) && this.#node(id).isUp);
    const id = this.#pick(candidates);
    if (id !== undefined) this.#startLearner(primary, this.#node(id));
    else if (this.#random.below(2) === 0) primary.step({ type: 'arrange', at: this.#now });
  }

  #offer({ primary, learner, ballot, run, session }: Ready): void {
    const isSame = learner.run === run && learner.session === session && learner.state?.syncedIn === ballot;
    primary.step({ type: isSame ? 'learner-ready' : 'learner-failed', node: learner.id, at: this.#now });
  }

  #startLearner(primary: SimulatedNode, learner: SimulatedNode): void {
    const state = primary.state!;
    const { ballot } = state.view;
    learner.readTo(this.map.revision);
    if (this.map.newest.group(GROUP).ballot !== ballot || primary.mapAt !== this.map.revision) return;
    if (!learner.disk.isIdle) return;
    const { session } = learner;
    primary.step({ type: 'learner-start', node: learner.id, session, at: this.#now });
    const slot = state.primary?.learner;
    if (slot === undefined) return;
    learner.close();
    learner.disk.replace(primary.disk.entries.slice(0, slot.base));
    learner.follow(slot.base, primary.id);
    for (const known of primary.requests.of(GROUP)) {
      if (known.sequence <= slot.base) learner.requests.remember(GROUP, known.requestId, known);
    }
    this.#ready.push({ primary, learner, ballot, run: learner.run, session });
  }
}
