import {
  type Ballot,
  type Clock,
  codeOf,
  type GroupKey,
  groupNumber,
  type Log,
  messageOf,
  type NodeId,
  type PolicyId,
  type Revision,
  WebdfsError,
} from '@webdfs/base';
import { allGroups, type GroupView, type LocalMap, type MapView, type NodeLease, propose } from '@webdfs/cluster';
import type { LogEntry, Store } from '@webdfs/store';
import type { Link } from '@webdfs/wire';
import { type Effect, type GroupEvent, isRare, type Outcome, type Proposal, type StepContext } from './events.ts';
import { isBlockInFlight, leaveGroup } from './damaged-tail.ts';
import { GroupDisks } from './group-disks.ts';
import { makeGroup, makeLearner } from './group-log.ts';
import type { EngineHooks } from './hooks.ts';
import { Patience } from './patience.ts';
import { Outbox } from './outbox.ts';
import type { ReplicaParameters } from './parameters.ts';
import { RareEffects } from './rare-effects.ts';
import { RequestTable } from './request-table.ts';
import { ServingWaits } from './serving-waits.ts';
import type { GroupState } from './state.ts';
import { stepGroup } from './step.ts';
import { TickWheel } from './tick-wheel.ts';
import { Transactor } from './transactor.ts';

/** The store's facts take tens of microseconds: they are not asked for at every write. */
const PLENTY_BYTES = 8 * 1024 * 1024 * 1024;
const PLENTY_ASK_MS = 100;
const SCARCE_ASK_MS = 5;

export interface LoopOptions {
  readonly self: NodeId;
  readonly store: Store;
  readonly map: LocalMap;
  readonly lease: NodeLease;
  readonly link: (node: NodeId) => Link;
  readonly clock: Clock;
  readonly log: Log;
  readonly parameters: ReplicaParameters;
  readonly hooks: EngineHooks;
  /** Gets the bytes of a block that was not staged here. */
  readonly obtain: (entry: LogEntry) => Promise<void>;
}

/**
 * The edge of the steps: keeps the state of every group that this node holds in sync, feeds events to the steps and performs
 * their effects, in order.
 */
export class GroupLoop {
  readonly requests: RequestTable;
  readonly outbox: Outbox;
  readonly patience: Patience;
  readonly waits: ServingWaits;
  readonly #options: LoopOptions;
  /** What the steps may look at. */
  readonly context: StepContext;
  readonly #states = new Map<number, GroupState>();
  readonly #disks: GroupDisks;
  readonly #rare: RareEffects;
  readonly #opening = new Map<number, Promise<void>>();
  readonly #tickets = new Map<number, (outcome: Outcome) => void>();
  readonly #wheel: TickWheel<GroupState>;
  readonly #transactor: Transactor;
  #nextTicket = 1;
  #session: Revision = 0;
  #isFull = false;
  #fullAskAt = -Infinity;
  #stop: (() => void) | undefined;
  #isStopped = false;

  constructor(options: LoopOptions) {
    this.#options = options;
    const { clock, parameters, lease, map, store, log } = options;
    const session = (): Revision => lease.session;
    this.requests = new RequestTable({ entries: parameters.requestTableEntries, keepMs: parameters.retryKeepMs });
    this.outbox = new Outbox({ link: options.link, clock, session, postBytes: parameters.postBytes });
    this.waits = new ServingWaits(clock, parameters);
    this.#rare = new RareEffects({
      store,
      link: options.link,
      hooks: options.hooks,
      log,
      offer: (key, event) => this.offer(key, { ...event, at: this.now() }),
      failed: (error) => this.#fatal(error),
    });
    this.#disks = new GroupDisks({
      store,
      clock,
      obtain: options.obtain,
      durable: (key, upTo) => this.offer(key, { type: 'durable', upTo, at: this.now() }),
      failed: (error) => this.#fatal(error),
    });
    this.patience = new Patience(map, parameters);
    this.#wheel = new TickWheel(clock, (states, at) => this.#tick(states, at));
    this.#transactor = new Transactor({
      map,
      clock,
      log,
      outcome: ({ key, ballot, id }, outcome) =>
        this.offer(key, { type: 'transaction', ballot, id, outcome, at: this.now() }),
    });
    this.context = {
      self: options.self,
      parameters,
      session,
      revision: () => map.view.revision,
      leaseHolds: () => lease.holds(),
      patienceMs: (node, at) => this.patience.ms(node, at),
      find: (key) => store.find(key),
      note: (group, name) => store.note(group, name),
      plan: (group, change) => planOrNothing(map.view, group, change),
      full: () => this.#full(),
      suspect: () => store.facts().suspect,
      flight: { bytes: 0 },
      requests: this.requests,
    };
  }

  now(): number {
    return this.#options.clock.monotonic();
  }

  /** Bytes of entries in flight, of all groups of this primary. */
  get flightBytes(): number {
    return this.context.flight.bytes;
  }

  /** Reads what the disk knows, then follows the map. Resolves when every group of this node has its state. */
  async start(): Promise<void> {
    const { store, map } = this.#options;
    const known = store.requests().toSorted((a, b) => a.timeMs - b.timeMs);
    for (const { requestId, sequence, ballot, timeMs, ...group } of known) {
      // What is not committed comes again with the pending entries, if it still counts.
      if (sequence > store.log(group).commit) continue;
      this.requests.remember(group, new Uint8Array(Buffer.from(requestId, 'hex')), { sequence, ballot, timeMs });
    }
    this.#session = this.context.session();
    this.#stop = map.onChange((view, groups) => this.#onMap(view, groups));
    this.#onMap(map.view, 'all');
    await Promise.all(this.#opening.values());
  }

  /** Nothing happens any more; who waits is refused. */
  stop(): void {
    this.#isStopped = true;
    this.#stop?.();
    this.#wheel.stop();
    this.#transactor.stop();
    this.waits.stop();
    const error = new WebdfsError('UNAVAILABLE', 'the node is stopping');
    for (const answer of this.#tickets.values()) answer({ type: 'refused', error });
    this.#tickets.clear();
  }

  state(key: GroupKey): GroupState | undefined {
    return this.#states.get(groupNumber(key));
  }

  states(): IterableIterator<GroupState> {
    return this.#states.values();
  }

  /** Whether the group's state is being read from the disk. */
  isOpening(key: GroupKey): boolean {
    return this.#opening.has(groupNumber(key));
  }

  /** The session may have changed without the map: every second, and whenever it matters. */
  checkSession(): void {
    if (this.#session === this.context.session()) return;
    this.#session = this.context.session();
    this.#onMap(this.#options.map.view, 'all');
  }

  /** A proposal to a group of this primary; resolves when it is committed. @throws what it was refused for */
  propose(key: GroupKey, make: (ticket: number) => Proposal): Promise<Extract<Outcome, { type: 'done' }>['answer']> {
    const state = this.state(key);
    const ticket = this.#nextTicket++;
    return new Promise((resolve, reject) => {
      this.#tickets.set(ticket, (outcome) => {
        if (outcome.type === 'done') resolve(outcome.answer);
        else reject(outcome.error);
      });
      if (state === undefined || this.#isStopped) {
        const details = { revision: this.context.revision() };
        const error = new WebdfsError('NOT_PRIMARY', `node ${this.#options.self} does not hold this group`, {
          details,
        });
        this.#answer(ticket, { type: 'refused', error });
      } else this.step(state, { type: 'proposal', proposal: make(ticket), at: this.now() });
    });
  }

  /** An event for a group, if this node holds it. */
  offer(key: GroupKey, event: GroupEvent): void {
    const state = this.state(key);
    if (state !== undefined) this.step(state, event);
  }

  step(state: GroupState, event: GroupEvent): void {
    if (this.#isStopped) return;
    const effects: Effect[] = [];
    try {
      stepGroup(state, event, this.context, effects);
    } catch (error) {
      this.#options.hooks.fatal?.(error);
      throw error;
    }
    let revived: Proposal[] | undefined;
    for (const effect of effects) {
      if (effect.type === 'revive') (revived ??= []).push(effect.proposal);
      else this.#perform(state, effect);
    }
    if (revived === undefined) return;
    for (const proposal of revived) this.step(state, { type: 'proposal', proposal, at: event.at });
  }

  #perform(state: GroupState, effect: Exclude<Effect, { type: 'revive' }>): void {
    const { store, hooks } = this.#options;
    const { key } = state;
    if (isRare(effect)) return this.#rare.perform(key, effect);
    switch (effect.type) {
      case 'send':
        return this.outbox.send(effect.to, effect.message);
      case 'append':
        return this.#disks.of(key).append(effect.entry);
      case 'cut':
        return this.#disks.of(key).cut(effect.after, effect.below);
      case 'apply':
        return store.commit(key, effect.upTo);
      case 'answer':
        return this.#answer(effect.ticket, effect.outcome);
      case 'wake':
        return this.#wheel.put(state, effect.at);
      case 'serving':
        this.waits.changed(key);
        return hooks.serving?.(key, effect.serving);
      case 'transact': {
        const { ballot, id, plan } = effect;
        return this.#transactor.propose({ key, ballot, id, plan, revision: this.context.revision() });
      }
    }
  }

  #fatal(error: unknown): void {
    if (this.#isStopped) return;
    this.#options.log.error('the disk has failed', { error: String(error) });
    this.#options.hooks.fatal?.(error);
  }

  #answer(ticket: number, outcome: Outcome): void {
    const answer = this.#tickets.get(ticket);
    this.#tickets.delete(ticket);
    answer?.(outcome);
  }

  /** Asked of the store often where space is scarce: an entry that was taken and is then refused holds up its group. */
  #full(): boolean {
    const at = this.now();
    if (at >= this.#fullAskAt) {
      const { full, freeBytes } = this.#options.store.facts();
      this.#isFull = full;
      this.#fullAskAt = at + (freeBytes > PLENTY_BYTES ? PLENTY_ASK_MS : SCARCE_ASK_MS);
    }
    return this.#isFull;
  }

  #tick(states: readonly GroupState[], at: number): void {
    this.checkSession();
    for (const state of states) {
      if (this.#states.get(groupNumber(state.key)) === state && state.wakeAt <= at)
        this.step(state, { type: 'tick', at });
    }
  }

  #onMap(view: MapView, groups: readonly GroupKey[] | 'all'): void {
    for (const key of groups === 'all' ? allGroups(view.map) : groups) this.#update(key, view.group(key));
    this.waits.mapChanged();
  }

  #update(key: GroupKey, view: GroupView): void {
    const state = this.state(key);
    const isMember = view.inSync.includes(this.#options.self);
    if (state === undefined) {
      if (isMember) this.#open(key);
      return;
    }
    const { ballot, inSync } = state.view;
    if (state.view !== view || ballot !== state.primary?.ballot) {
      if (view.ballot !== ballot) this.#withdraw(state);
      this.step(state, { type: 'view', view, at: this.now() });
    }
    const isLearner = !inSync.includes(this.#options.self) && state.syncedIn === view.ballot;
    if (!isMember && !isLearner) this.#close(state);
  }

  /** Entries that the disk was not given were not acknowledged either: a new ballot decides about them. */
  #withdraw(state: GroupState): void {
    const first = this.#disks.withdraw(state.key);
    if (first !== undefined) this.step(state, { type: 'withdrawn', last: first - 1, at: this.now() });
  }

  #open(key: GroupKey): void {
    const number = groupNumber(key);
    if (this.#opening.has(number)) return;
    const log = this.#options.store.log(key);
    if (log.last === log.commit && !this.#disks.has(key)) return this.#begin(key, []);
    const opening = this.#openSlowly(key).catch((error: unknown) => this.#cannotOpen(key, error));
    this.#opening.set(number, opening);
  }

  async #openSlowly(key: GroupKey): Promise<void> {
    await this.#disks.quiet(key);
    const pending = await this.#options.store.pending(key);
    this.#opening.delete(groupNumber(key));
    if (!this.#isStopped) this.#begin(key, pending);
  }

  /**
   * A tail that the disk does not give any more is lost: this node leaves the group and learns it again; or, where the others
   * would be too few, all of its groups, as with an old disk (T6).
   */
  async #cannotOpen(key: GroupKey, error: unknown): Promise<void> {
    const { log, hooks, self, map, store, clock } = this.#options;
    if (codeOf(error) !== 'CORRUPT' || hooks.diskIsOld === undefined) return this.#fatal(error);
    if (this.#isStopped) return;
    const fields = { policy: key.policy, group: key.group };
    log.error('group.tail-damaged', { ...fields, error: messageOf(error) });
    const isLeft = await leaveGroup({ self, map, store, clock, isStopped: () => this.#isStopped }, key);
    this.#opening.delete(groupNumber(key));
    if (this.#isStopped) return;
    if (isLeft) log.warn('group.left', fields);
    else hooks.diskIsOld(key);
  }

  /**
   * The bytes of a block are damaged here, and nobody else has them. If this primary has proposed it and not committed it, it
   * never can: its disk has lost what it was to hold, and the group waits until another leads it.
   */
  blockLost(key: GroupKey, id: Uint8Array): void {
    const state = this.state(key);
    if (state === undefined || state.view.inSync.length < 2 || !isBlockInFlight(state, id) || this.#isStopped) return;
    this.#options.log.error('group.block-lost', { policy: key.policy, group: key.group });
    this.#options.hooks.diskIsOld?.(key);
  }

  /** Resolves when nothing of a group that this node left is on its way to the disk. */
  async quiet(key: GroupKey): Promise<void> {
    await this.#opening.get(groupNumber(key));
    if (this.state(key) === undefined) await this.#disks.quiet(key);
  }

  /**
   * From now on this node takes the appends of `ballot` that follow `base`, as a learner (J2). What it held of the group
   * beyond its commit point is void; unless `asIs`: the log stands at `base` already and holds nothing else.
   *
   * @throws STALE_BALLOT if the map has another ballot now, or this node is in sync by it
   */
  async follow(
    key: GroupKey,
    ballot: Ballot,
    { base, asIs }: { base: { readonly sequence: number; readonly ballot: Ballot }; asIs: boolean },
  ): Promise<void> {
    const { store, map } = this.#options;
    const number = groupNumber(key);
    this.#checkFollows(key, ballot);
    const before = this.#states.get(number);
    if (before?.syncedIn === ballot && before.base === base.sequence) return;
    if (before !== undefined) this.#close(before);
    await this.#opening.get(number);
    await this.#disks.quiet(key);
    if (!asIs) {
      await store.mark(key, { role: 'learner', syncedIn: ballot });
      await store.rebase(key, base.sequence, base.ballot);
    }
    this.#checkFollows(key, ballot);
    const view = map.view.group(key);
    const state = makeLearner({ key, view, log: store.log(key), pending: [], context: this.context });
    state.base = base.sequence;
    this.#states.set(number, state);
  }

  #checkFollows(key: GroupKey, ballot: Ballot): void {
    const { map, self } = this.#options;
    const view = map.view.group(key);
    if (view.ballot === ballot && !view.inSync.includes(self)) return;
    const details = { revision: map.view.revision };
    throw new WebdfsError('STALE_BALLOT', `the group has ballot ${view.ballot}, not ${ballot}`, { details });
  }

  #begin(key: GroupKey, pending: readonly LogEntry[]): void {
    const { map, store, self } = this.#options;
    const view = map.view.group(key);
    if (!view.inSync.includes(self)) return;
    const state = makeGroup({ key, view, log: store.log(key), pending, context: this.context });
    this.#states.set(groupNumber(key), state);
    this.step(state, { type: 'view', view, at: this.now() });
  }

  /** The node left the group: what it had not committed counts no more, unless it is called back. */
  #close(state: GroupState): void {
    this.#withdraw(state);
    for (const { request, ballot } of state.tail) if (request >= 0) this.requests.forget(request, ballot);
    this.#states.delete(groupNumber(state.key));
  }

  /** For each group of a policy the ballot this node serves all keys of now, or 0 (R1, L3). */
  servingBallots(policy: PolicyId): Float64Array {
    const ballots = new Float64Array(2 ** this.#options.map.view.map.groupBits);
    if (!this.#options.lease.holds()) return ballots;
    for (const { key, primary, view, commit, last } of this.#states.values()) {
      if (key.policy !== policy || primary?.phase !== 'serve') continue;
      const isCertain = view.inSync.length >= view.minCopies || commit === last;
      if (isCertain) ballots[key.group] = primary.ballot;
    }
    return ballots;
  }
}

function planOrNothing(
  view: MapView,
  group: GroupKey,
  change: Parameters<typeof propose>[2],
): ReturnType<typeof propose> | undefined {
  try {
    return propose(view, group, change);
  } catch (error) {
    if (error instanceof WebdfsError) return undefined;
    throw error;
  }
}
