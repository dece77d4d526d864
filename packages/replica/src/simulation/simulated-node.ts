import { assert, type NodeId, type Revision, WebdfsError } from '@webdfs/base';
import {
  type MapSnapshot,
  type MembershipChange,
  propose,
  type Proposal as MembershipProposal,
  revisionOf,
} from '@webdfs/cluster';
import {
  type Effect,
  type GroupEvent,
  isRare,
  type Outcome,
  type Proposal,
  type RareEffect,
  type StepContext,
} from '../events.ts';
import { makeGroup, makeLearner } from '../group-log.ts';
import { judge } from '../judge.ts';
import type { ProtocolMessage } from '../messages.ts';
import type { ReplicaParameters } from '../parameters.ts';
import { RequestTable } from '../request-table.ts';
import type { GroupState } from '../state.ts';
import { stepGroup } from '../step.ts';
import { MemoryLog } from './memory-log.ts';
import { GROUP, type Rules } from './rules.ts';

/** What a node can ask of the world around it. */
export interface World {
  readonly parameters: ReplicaParameters;
  readonly rules: Rules;
  now(): number;
  snapshot(revision: Revision): MapSnapshot;
  newestRevision(): Revision;
  post(from: SimulatedNode, to: NodeId, message: ProtocolMessage): void;
  answer(node: SimulatedNode, ticket: number, outcome: Outcome): void;
  /** Something that takes a while: performed later if the node still runs as it does now. */
  later(node: SimulatedNode, what: () => void): void;
  transact(node: SimulatedNode, effect: Extract<Effect, { type: 'transact' }>): void;
  fetch(node: SimulatedNode, effect: Extract<Effect, { type: 'fetch' }>): void;
  notice(node: SimulatedNode, effect: Extract<Effect, { type: 'complain' | 'disk-is-old' | 'learner-lost' }>): void;
}

/** One node of the simulation: the steps of one group, with an edge that the seed drives. */
export class SimulatedNode {
  readonly id: NodeId;
  readonly disk = new MemoryLog(GROUP);
  readonly #world: World;
  /** Raised with each start and stop: what was asked for by an earlier run is not answered. */
  run = 0;
  isUp = false;
  /** Until then it reaches nobody, or only not the map store; clients still reach it. */
  cutOff: { readonly until: number; readonly from: 'everybody' | 'the map' } = { until: 0, from: 'the map' };
  session: Revision = 0;
  mapAt: Revision = 0;
  leaseUntil = 0;
  renewedAt = 0;
  state: GroupState | undefined;
  requests = new RequestTable({ entries: 1_024, keepMs: 120_000 });
  #context: StepContext;
  /** The base of the log that it follows as a learner; its past has not come yet. */
  learning: { readonly base: number; readonly from: NodeId } | undefined;

  constructor(id: NodeId, world: World) {
    this.id = id;
    this.#world = world;
    this.#context = this.#makeContext();
  }

  get map(): MapSnapshot {
    return this.#world.snapshot(this.mapAt);
  }

  isCutOffFrom(what: 'everybody' | 'the map'): boolean {
    return this.#world.now() < this.cutOff.until && (what === 'the map' || this.cutOff.from === what);
  }

  get holds(): boolean {
    return this.isUp && this.#world.now() < this.leaseUntil;
  }

  #makeContext(): StepContext {
    return {
      self: this.id,
      parameters: this.#world.parameters,
      session: () => this.session,
      revision: () => this.mapAt,
      leaseHolds: () => this.holds,
      patienceMs: () => this.#world.parameters.memberMs,
      find: (key) => this.disk.find(key),
      note: () => undefined,
      plan: (_, change) => this.#plan(change),
      full: () => false,
      suspect: () => false,
      flight: { bytes: 0 },
      requests: this.#world.rules.noRequestTable ? forgetful(this.requests) : this.requests,
    };
  }

  #plan(change: MembershipChange): MembershipProposal | undefined {
    try {
      return propose(this.map, GROUP, change);
    } catch (error) {
      if (error instanceof WebdfsError) return undefined;
      throw error;
    }
  }

  start(session: Revision, mapAt: Revision): void {
    assert(!this.isUp, 'a node starts once');
    this.isUp = true;
    this.run++;
    this.session = session;
    this.mapAt = mapAt;
    this.requests = new RequestTable({ entries: 1_024, keepMs: 120_000 });
    for (const entry of this.disk.entries.slice(0, this.disk.commit)) {
      const { sequence, ballot, timeMs } = entry;
      this.requests.remember(GROUP, entry.meta.subarray(0, 16), { sequence, ballot, timeMs });
    }
    this.#context = this.#makeContext();
    this.update();
  }

  crash(survivors: number, remembered: number): void {
    this.isUp = false;
    this.run++;
    this.session = 0;
    this.leaseUntil = 0;
    this.state = undefined;
    this.learning = undefined;
    this.disk.crash(survivors, remembered);
  }

  /** The map has moved on, or this node begins. */
  update(): void {
    const view = this.#world.rules.viewOf(this.map.group(GROUP));
    const isMember = view.inSync.includes(this.id);
    const { state } = this;
    if (state === undefined) {
      // What an earlier state had on its way settles first.
      if (!isMember || !this.disk.isIdle) return;
      this.state = makeGroup({
        key: GROUP,
        view,
        log: this.disk.log(),
        pending: this.disk.pending(),
        context: this.#context,
      });
      this.step({ type: 'view', view, at: this.#world.now() });
      return;
    }
    const isLearner = !state.view.inSync.includes(this.id) && state.syncedIn === view.ballot;
    if (state.view !== view) this.step({ type: 'view', view, at: this.#world.now() });
    if (!isMember && !isLearner) this.close();
  }

  close(): void {
    for (const { request, ballot } of this.state?.tail ?? []) if (request >= 0) this.requests.forget(request, ballot);
    this.state = undefined;
    this.learning = undefined;
  }

  /** J2. */
  follow(base: number, from: NodeId): void {
    assert(this.disk.isIdle, 'a learner begins on a quiet disk');
    this.close();
    const view = this.#world.rules.viewOf(this.map.group(GROUP));
    const log = { ...this.disk.log(), last: base, commit: base };
    this.state = makeLearner({ key: GROUP, view, log, pending: [], context: this.#context });
    this.state.base = base;
    this.learning = { base, from };
  }

  readTo(revision: Revision): void {
    if (revision <= this.mapAt) return;
    this.mapAt = revision;
    this.update();
  }

  receive(from: NodeId, session: Revision, message: ProtocolMessage): void {
    const world = this.#world;
    const verdict = judge(message, {
      self: this.id,
      from,
      revision: this.mapAt,
      view: world.rules.viewOf(this.map.group(GROUP)),
    });
    const { ballot } = message;
    if (verdict === 'take') {
      if (this.state === undefined) return;
      world.rules.beforeMessage(this, message);
      this.step({ type: 'message', from, session, message, at: world.now() });
    } else if (verdict === 'newer') {
      if (this.isCutOffFrom('the map')) return;
      this.readTo(Math.max(revisionOf(ballot), this.mapAt));
      this.receive(from, session, message);
    } else if (verdict === 'stale') {
      world.post(this, from, { type: 'stale', ...GROUP, ballot, revision: this.mapAt });
    } else if (verdict === 'released') {
      world.post(this, from, { type: 'released', ...GROUP, ballot });
    } else if (verdict === 'catch-up' && message.type === 'stale') {
      if (this.isCutOffFrom('the map')) return;
      this.readTo(Math.min(message.revision, world.newestRevision()));
    }
  }

  propose(proposal: Proposal): void {
    assert(this.state !== undefined, 'only a node with the group is asked');
    this.step({ type: 'proposal', proposal, at: this.#world.now() });
  }

  step(event: GroupEvent): void {
    const { state } = this;
    if (state === undefined) return;
    const effects: Effect[] = [];
    stepGroup(state, event, this.#context, effects);
    const revived: Proposal[] = [];
    for (const effect of effects) {
      if (effect.type === 'revive') revived.push(effect.proposal);
      else this.#perform(effect);
    }
    for (const proposal of revived) this.step({ type: 'proposal', proposal, at: event.at });
  }

  #perform(effect: Exclude<Effect, { type: 'revive' }>): void {
    const world = this.#world;
    if (isRare(effect)) return this.#performRare(effect);
    switch (effect.type) {
      case 'send':
        return world.post(this, effect.to, effect.message);
      case 'append':
        return this.disk.push({ type: 'append', entry: effect.entry });
      case 'cut':
        return this.disk.push({ type: 'cut', after: effect.after, below: effect.below });
      case 'apply':
        return this.disk.apply(effect.upTo);
      case 'answer':
        return world.answer(this, effect.ticket, effect.outcome);
      case 'transact':
        return world.transact(this, effect);
      case 'serving':
      case 'wake':
        return;
    }
  }

  #performRare(effect: RareEffect): void {
    const world = this.#world;
    switch (effect.type) {
      case 'mark':
        return this.disk.push({ type: 'mark', mark: effect.mark });
      case 'load':
        return world.later(this, () => {
          this.step({ type: 'loaded', ballot: effect.ballot, entries: this.disk.pending(), at: world.now() });
        });
      case 'fetch':
        return world.fetch(this, effect);
      case 'complain':
      case 'disk-is-old':
      case 'learner-lost':
        return world.notice(this, effect);
      case 'learner-refused':
        return;
    }
  }

  /** The disk reports what `count` operations came to. */
  sync(count: number): void {
    const settled = this.disk.sync(count);
    if (this.state === undefined) return this.update();
    for (const news of settled) {
      if (news.type === 'marked') this.step({ type: 'marked', at: this.#world.now() });
      else if (news.upTo <= this.state.last) this.step({ ...news, at: this.#world.now() });
    }
  }
}

/** Broken on purpose: every request looks new. */
function forgetful(table: RequestTable): RequestTable {
  return new Proxy(table, {
    get(target, name) {
      if (name === 'find' || name === 'answer') return () => undefined;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
