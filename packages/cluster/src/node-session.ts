import { type Clock, codeOf, type Log, messageOf, type Revision, sleep, type Timer, WebdfsError } from '@webdfs/base';
import { type Instant, leaseHolds, leaseStep, NO_LEASE } from './lease.ts';
import { FROZEN_KEY } from './keys.ts';
import type { FollowedMap } from './local-map.ts';
import type { LiveInfo, ProcessMark } from './map.ts';
import type { Lease, MapStore } from './map-store.ts';
import { type MemoryFile, type NodeMemory, packMemory, unpackMemory } from './node-memory.ts';
import type { ClusterParameters } from './parameters.ts';
import type { ProcessTable } from './process-table.ts';
import { type DiskVerdict, type NodeFacts, planRegistration, sessionWrite } from './registration.ts';
import type { MapView, NodeLease } from './view.ts';

export interface NodeSessionOptions extends NodeFacts {
  readonly store: MapStore;
  readonly map: FollowedMap;
  readonly clock: Clock;
  readonly log: Log;
  readonly parameters: ClusterParameters;
  readonly processes: ProcessTable;
  readonly memory: MemoryFile;
  /** Where clients of the gateway reach this node. */
  readonly door?: string;
  /** When the node's last durable write was begun, of those that have ended; monotonic clock. */
  readonly lastDurableMs?: () => number;
}

const TRIES = 20;
/** How often a live key that is in the way is looked at again. */
const LOOK_MS = 100;

function frozen(): WebdfsError {
  return new WebdfsError(
    'BAD_CONFIG',
    'the map of this cluster was taken to another store, where its nodes belong now: see "webdfs cluster export"',
  );
}

/**
 * A node's standing in the cluster: it registers, keeps its lease, and says at any instant whether it may act as primary.
 * When its lease is lost it registers again, as a new session; when it finds its place taken, or its map store older than
 * what it has seen, it stops (`failed`).
 */
export class NodeSession implements NodeLease, AsyncDisposable {
  readonly #options: NodeSessionOptions;
  readonly #own: ProcessMark;
  readonly #startedMs: number;
  readonly #closed = new AbortController();
  readonly #failure = Promise.withResolvers<WebdfsError>();
  readonly #stopListening: () => void;
  #memory: NodeMemory | undefined;
  #verdict: DiskVerdict = 'same';
  #state = NO_LEASE;
  #session: Revision = 0;
  #renewedMs: number | undefined;
  /** Whether the map shows our session. */
  #registered = false;
  #lease: Lease | undefined;
  #attempts = 0;
  #renewing = false;
  #saving = false;
  #work: Promise<void> = Promise.resolve();
  /** Another session of this node, and since when it was seen in the way. */
  #inTheWay: { readonly session: Revision; readonly sinceMs: number } | undefined;
  #timers: Timer[] = [];

  private constructor(options: NodeSessionOptions, own: ProcessMark, memory: NodeMemory | undefined) {
    this.#options = options;
    this.#own = own;
    this.#memory = memory;
    this.#startedMs = options.clock.now();
    this.#stopListening = options.map.onChange((view) => this.#mapChanged(view));
  }

  /**
   * Registers and renews until disposed of. Resolves once the node holds its first lease.
   *
   * @throws LOCKED if another process runs as this node, OLD_STORE, WRONG_PEER, UNAVAILABLE, CORRUPT (the memory file)
   */
  static async start(options: NodeSessionOptions): Promise<NodeSession> {
    const bytes = await options.memory.load();
    const session = new NodeSession(
      options,
      await options.processes.own(),
      bytes === undefined ? undefined : unpackMemory(bytes),
    );
    try {
      await session.#register();
    } catch (error) {
      await session[Symbol.asyncDispose]();
      throw error;
    }
    session.#every(options.parameters.renewMs, () => session.#tick());
    session.#every(options.parameters.lifeMs, () => session.#raiseLife());
    return session;
  }

  get session(): Revision {
    return this.#session;
  }

  /** When the renewal that counted last was begun, by the monotonic clock; undefined before the first. */
  get renewedMs(): number | undefined {
    return this.#renewedMs;
  }

  /** How the node's disk was judged when it registered last. */
  get verdict(): DiskVerdict {
    return this.#verdict;
  }

  /** Resolves when the node must stop: LOCKED or OLD_STORE. Never rejects. */
  get failed(): Promise<WebdfsError> {
    return Promise.race([this.#failure.promise, this.#options.map.failed]);
  }

  holds(): boolean {
    return this.#registered && leaseHolds(this.#state, this.#now(), this.#options.parameters.marginMs);
  }

  /** Gives the session up at once, so that nobody waits for the lease to run out. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    this.#stopListening();
    for (const timer of this.#timers) timer.cancel();
    this.#registered = false;
    await this.#work;
    await this.#lease?.end().catch(() => undefined);
  }

  #now(): Instant {
    const { clock } = this.#options;
    return { monotonicMs: clock.monotonic(), wallMs: clock.now() };
  }

  #every(ms: number, action: () => Promise<void>): void {
    const index = this.#timers.length;
    const again = (): void => {
      this.#timers[index] = this.#options.clock.after(ms, () => {
        if (this.#closed.signal.aborted) return;
        again();
        this.#work = Promise.all([this.#work, action()]).then(() => undefined);
      });
    };
    again();
  }

  #mapChanged(view: MapView): void {
    this.#state = leaseStep(this.#state, { type: 'map', revision: view.revision });
    const live = view.live(this.#options.node);
    this.#registered = this.#session > 0 && live?.session === this.#session;
  }

  // ---- registering ----

  async #register(): Promise<void> {
    const { map, node } = this.#options;
    let tries = 0;
    while (tries < TRIES && !this.#closed.signal.aborted) {
      const view = await map.readFresh();
      if (map.view.frozen) throw frozen();
      const replaced = await this.#predecessor(view);
      if (replaced === 'wait') {
        await sleep(this.#options.clock, LOOK_MS, this.#closed.signal);
        continue;
      }
      if (await this.#tryRegister(view, replaced)) return;
      tries++;
      // what was in the way may be on its way into the map
      await sleep(this.#options.clock, LOOK_MS, this.#closed.signal).catch(() => undefined);
    }
    throw new WebdfsError('UNAVAILABLE', `node ${node} could not register in ${TRIES} tries`);
  }

  /**
   * The session that this one may replace, 0 if there is none. Another run's is replaced only if that process is seen to
   * be gone; else its lease must run out, and if that is being renewed, two nodes have one id.
   */
  async #predecessor(view: MapView): Promise<Revision | 'wait'> {
    const live = view.live(this.#options.node);
    if (live === undefined) {
      this.#inTheWay = undefined;
      return 0;
    }
    const { info, session } = live;
    if (
      info.process !== undefined &&
      (this.#isOwn(info.process) || (await this.#options.processes.gone(info.process)))
    ) {
      return session;
    }
    const now = this.#options.clock.monotonic();
    if (this.#inTheWay?.session !== session) this.#inTheWay = { session, sinceMs: now };
    // twice the lease: an owner that stood still lets all leases start again once
    const outlived =
      now - this.#inTheWay.sinceMs > 2 * this.#options.parameters.leaseMs + this.#options.parameters.marginMs;
    if (this.#session > 0 || outlived) throw this.#takenOver(info.pid);
    return 'wait';
  }

  #isOwn(mark: ProcessMark): boolean {
    return mark.pid === this.#own.pid && mark.start === this.#own.start && mark.boot === this.#own.boot;
  }

  #takenOver(pid: number): WebdfsError {
    const { node } = this.#options;
    return new WebdfsError('LOCKED', `process ${pid} runs as node ${node} too: is its data folder a copy?`, {
      details: { node, pid },
    });
  }

  async #tryRegister(view: MapView, replaced: Revision): Promise<boolean> {
    const options = this.#options;
    const plan = planRegistration(view, options, this.#memory);
    if (plan.verdict !== 'lost') await this.#save(plan.memory);
    const lease = await options.store.lease(options.parameters.leaseMs);
    const session = sessionWrite(options.node, this.#liveInfo(), lease.id, replaced);
    let answer: { done: boolean; revision: Revision } | undefined;
    try {
      answer = await options.store.transact({
        compare: [...plan.compare, session.compare, { type: 'modified', key: FROZEN_KEY, is: 0 }],
        write: [...plan.write, session.write],
      });
    } finally {
      // also when nobody knows whether it happened: a session that was made is gone with its lease
      if (answer?.done !== true) await lease.end().catch(() => undefined);
    }
    if (!answer.done) return false;
    this.#lease = lease;
    if (plan.verdict === 'lost') await this.#save({ ...plan.memory, revision: answer.revision });
    this.#verdict = plan.verdict;
    this.#state = leaseStep(this.#state, { type: 'gone' });
    this.#session = answer.revision;
    this.#mapChanged(await options.map.readThrough(answer.revision));
    options.log.info('node.registered', { node: options.node, session: answer.revision, disk: plan.verdict });
    await this.#renew(lease);
    return true;
  }

  #liveInfo(): LiveInfo {
    const { door } = this.#options;
    return {
      pid: this.#own.pid,
      startedMs: this.#startedMs,
      ...(door === undefined ? {} : { door }),
      process: this.#own,
    };
  }

  // ---- keeping the lease ----

  async #tick(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    try {
      if (this.#lease !== undefined) await this.#renew(this.#lease);
      else await this.#register();
    } catch (error) {
      this.#renewalFailed(error);
    } finally {
      this.#renewing = false;
    }
  }

  #renewalFailed(error: unknown): void {
    const code = codeOf(error);
    if (this.#closed.signal.aborted) return;
    if (code === undefined) throw error;
    if (code === 'LOCKED' || code === 'OLD_STORE' || code === 'WRONG_PEER') {
      this.#registered = false;
      this.#failure.resolve(error as WebdfsError);
      this.#closed.abort();
      for (const timer of this.#timers) timer.cancel();
    }
    if (code === 'NOT_FOUND') {
      // the lease is gone, and with it the session: a new one begins at the next tick
      this.#state = leaseStep(this.#state, { type: 'gone' });
      this.#lease = undefined;
    }
    this.#options.log.warn('node.lease', { node: this.#options.node, code, error: messageOf(error) });
  }

  /** One renewal; it counts when all its parts have come in, whenever that is. */
  async #renew(lease: Lease): Promise<void> {
    const { store, map } = this.#options;
    const id = ++this.#attempts;
    const at = this.#now();
    this.#state = leaseStep(this.#state, { type: 'attempt', id, at });
    this.#proveDisk(at);
    // a store may grant more than was asked; others wait for a lease of the time that all have agreed on
    const ttlMs = Math.min(lease.ttlMs, this.#options.parameters.leaseMs);
    const kept = lease.renew().then(() => {
      this.#state = leaseStep(this.#state, { type: 'kept', id, ttlMs });
    });
    const complete = store.fresh(map.view.revision).then(async (revision) => {
      this.#state = leaseStep(this.#state, { type: 'fresh', id, revision });
      const view = await map.readThrough(revision);
      this.#state = leaseStep(this.#state, { type: 'map', revision: view.revision });
    });
    const outcomes = await Promise.allSettled([kept, complete]);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    this.#renewedMs = at.monotonicMs;
    if (!this.#registered && this.#session > 0) this.#checkTaken(map.view);
  }

  /** The lease lives, but the map shows no session of ours: somebody took or removed it. */
  #checkTaken(view: MapView): void {
    const live = view.live(this.#options.node);
    if (live !== undefined && live.session !== this.#session) throw this.#takenOver(live.info.pid);
    if (live === undefined) throw new WebdfsError('NOT_FOUND', 'the session is gone');
  }

  /** Counts the store's own durable writes, and makes one where there were none for a while. */
  #proveDisk(at: Instant): void {
    const last = this.#options.lastDurableMs?.();
    if (last !== undefined) this.#state = leaseStep(this.#state, { type: 'durable', beganMs: last });
    const old = at.monotonicMs - this.#state.durableMs > this.#options.parameters.leaseMs / 2;
    if (!old || this.#saving || this.#memory === undefined) return;
    const { revision, map } = this.#options.map.view;
    this.#work = Promise.all([this.#work, this.#saveQuietly({ ...this.#memory, era: map.era, revision })]).then(
      () => undefined,
    );
  }

  /**
   * This node's disk lacks what it had acknowledged (T2): the next start finds a memory older than the map's and registers the
   * disk as an old one, in sync and eligible nowhere. The node must stop after this.
   */
  async disown(): Promise<void> {
    if (this.#memory === undefined) return;
    this.#closed.abort();
    await this.#save({ ...this.#memory, life: 0 });
  }

  async #saveQuietly(memory: NodeMemory): Promise<void> {
    try {
      await this.#save(memory);
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      this.#options.log.error('node.memory', { node: this.#options.node, error: messageOf(error) });
    }
  }

  async #save(memory: NodeMemory): Promise<void> {
    this.#saving = true;
    try {
      const beganMs = this.#options.clock.monotonic();
      await this.#options.memory.save(packMemory(memory));
      this.#memory = memory;
      this.#state = leaseStep(this.#state, { type: 'durable', beganMs });
    } finally {
      this.#saving = false;
    }
  }

  /** Disk first, then the map: so that the disk is never behind, unless it is an old one. */
  async #raiseLife(): Promise<void> {
    const { map, store, node } = this.#options;
    const known = map.view.node(node);
    if (!this.#registered || this.#memory === undefined || known === undefined || this.#saving) return;
    const life = known.life + 1;
    await this.#saveQuietly({ ...this.#memory, life });
    if (this.#memory.life !== life) return;
    const { revision, ...info } = known;
    const raised = { type: 'put', key: `node/${node}`, value: JSON.stringify({ ...info, life }) } as const;
    try {
      await store.transact({ compare: [{ type: 'modified', key: raised.key, is: revision }], write: [raised] });
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      this.#options.log.warn('node.life', { node, error: messageOf(error) });
    }
  }
}
