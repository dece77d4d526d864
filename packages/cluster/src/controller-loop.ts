import { type Clock, codeOf, type Log, messageOf, type NodeId, type Revision, sleep } from '@webdfs/base';
import { type ControllerEffect, type ControllerEvent, controllerStep, liveNodes, newController } from './controller.ts';
import { formatDocument } from './documents.ts';
import type { Complaint } from './judgement.ts';
import { CONTROLLER_KEY } from './keys.ts';
import type { FollowedMap } from './local-map.ts';
import type { Lease, MapStore } from './map-store.ts';
import type { ClusterParameters } from './parameters.ts';
import type { MapView } from './view.ts';

export interface ControllerOptions {
  readonly node: NodeId;
  /** The node's own session, 0 while it has none: then it does not stand for election. */
  readonly session: () => Revision;
  /** When the node's lease was last renewed, by the monotonic clock; before the first time undefined. */
  readonly renewedMs: () => number | undefined;
  readonly store: MapStore;
  readonly map: FollowedMap;
  readonly clock: Clock;
  readonly log: Log;
  readonly parameters: ClusterParameters;
}

/** A node's part in controlling: mostly waiting to be elected. */
export interface RunningController extends AsyncDisposable {
  /** Whether this node is the controller now, as far as it knows. */
  readonly elected: boolean;
  /** Another node's complaint; ignored unless this one is the controller. */
  complain(complaint: Complaint): void;
}

/** A lease that was not renewed for so many renewals says that the store is away. */
const MISSED_RENEWALS = 3;
/** Changes of the map that come together are planned for together. */
const MAP_PAUSE_MS = 50;

class Controller implements RunningController {
  readonly #options: ControllerOptions;
  readonly #closed = new AbortController();
  readonly #loop: Promise<void>;
  #feed: ((event: ControllerEvent) => void) | undefined;
  /** Nodes whose sessions this node's map has shown. */
  readonly #seen = new Set<NodeId>();
  /** Not before: sessions from before the store was away may end because of that. */
  #seesFromMs = 0;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#see(options.map.view);
    const stopSeeing = options.map.onChange((view) => this.#see(view));
    this.#closed.signal.addEventListener('abort', stopSeeing, { once: true });
    this.#loop = this.#run();
  }

  get elected(): boolean {
    return this.#feed !== undefined;
  }

  complain(complaint: Complaint): void {
    this.#feed?.({ type: 'complaint', complaint, at: this.#options.clock.monotonic() });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    await this.#loop;
  }

  #see(view: MapView): void {
    this.#lookForAbsence();
    if (this.#options.clock.monotonic() < this.#seesFromMs) return;
    for (const node of liveNodes(view)) this.#seen.add(node);
  }

  #lookForAbsence(): void {
    const { clock, renewedMs, parameters } = this.#options;
    const renewed = renewedMs();
    const now = clock.monotonic();
    if (renewed !== undefined && now - renewed > MISSED_RENEWALS * parameters.renewMs) this.#wasAway(now);
  }

  #wasAway(now: number): void {
    this.#seesFromMs = now + this.#options.parameters.graceMs;
    this.#seen.clear();
  }

  async #run(): Promise<void> {
    const { clock, log, parameters, node } = this.#options;
    while (!this.#closed.signal.aborted) {
      this.#lookForAbsence();
      try {
        await this.#stand();
      } catch (error) {
        if (codeOf(error) === undefined) throw error;
        this.#wasAway(clock.monotonic());
        log.warn('controller.away', { node, error: messageOf(error) });
      }
      await sleep(clock, parameters.renewMs, this.#closed.signal).catch(() => undefined);
    }
  }

  /** Stands for election once; if elected, serves until deposed. */
  async #stand(): Promise<void> {
    const { map, store, node, session, parameters, log } = this.#options;
    if (map.view.controller() !== undefined || session() === 0) return;
    const lease = await store.lease(parameters.leaseMs);
    try {
      const answer = await store.transact({
        compare: [{ type: 'created', key: CONTROLLER_KEY, is: 0 }],
        write: [
          {
            type: 'put',
            key: CONTROLLER_KEY,
            value: formatDocument({ node, session: session() }),
            lease: lease.id,
          },
        ],
      });
      if (!answer.done) return;
      await map.readThrough(answer.revision);
      log.info('controller.elected', { node, revision: answer.revision });
      await this.#serve(answer.revision, lease);
      log.info('controller.deposed', { node, revision: answer.revision });
    } finally {
      await lease.end().catch(() => undefined);
    }
  }

  async #serve(elected: Revision, lease: Lease): Promise<void> {
    const { map, clock, parameters } = this.#options;
    // told to stop between the election and here
    if (this.#closed.signal.aborted) return;
    const deposed = Promise.withResolvers<void>();
    let state = newController(map.view, elected, clock.monotonic(), {
      parameters,
      seen: new Set(this.#seen),
      seesFromMs: this.#seesFromMs,
    });
    const feed = (event: ControllerEvent): void => {
      const next = controllerStep(state, event, parameters);
      state = next.state;
      for (const effect of next.effects) void this.#perform(effect, feed).catch(deposed.reject);
    };
    this.#feed = feed;
    const stopMap = this.#feedMap(elected, feed, deposed.resolve);
    const beating = this.#beat(lease, feed);
    this.#closed.signal.addEventListener('abort', () => deposed.resolve(), { once: true });
    try {
      await Promise.race([deposed.promise, beating.lost]);
    } finally {
      this.#feed = undefined;
      stopMap();
      beating.stop();
    }
  }

  /** Feeds the newest map, a few times a second however many changes come: every plan looks at all groups. */
  #feedMap(elected: Revision, feed: (event: ControllerEvent) => void, onDeposed: () => void): () => void {
    const { map, clock } = this.#options;
    let waiting = false;
    let stopped = false;
    const stop = map.onChange((view) => {
      if (view.controller()?.createRevision !== elected) return onDeposed();
      if (waiting) return;
      waiting = true;
      clock.after(MAP_PAUSE_MS, () => {
        waiting = false;
        if (!stopped) feed({ type: 'map', view: map.view, at: clock.monotonic() });
      });
    });
    return () => {
      stopped = true;
      stop();
    };
  }

  /** Renews the lease and feeds ticks; `lost` resolves when the lease is gone. */
  #beat(lease: Lease, feed: (event: ControllerEvent) => void): { lost: Promise<void>; stop: () => void } {
    const { clock, parameters } = this.#options;
    const stopped = new AbortController();
    const beat = async (): Promise<void> => {
      while (!stopped.signal.aborted) {
        try {
          await lease.renew();
        } catch (error) {
          if (codeOf(error) === 'NOT_FOUND') return;
          if (codeOf(error) === undefined) throw error;
          if (!stopped.signal.aborted) feed({ type: 'away', at: clock.monotonic() });
        }
        await sleep(clock, parameters.renewMs, stopped.signal).catch(() => undefined);
        if (!stopped.signal.aborted) feed({ type: 'tick', at: clock.monotonic() });
      }
    };
    return { lost: beat(), stop: () => stopped.abort() };
  }

  /** Performs one transaction, and tells its outcome once the map shows it. */
  async #perform(effect: ControllerEffect, feed: (event: ControllerEvent) => void): Promise<void> {
    const { map, clock, log, node } = this.#options;
    let outcome: 'done' | 'failed' | 'unknown';
    try {
      const answer = await map.transact(effect.transaction);
      outcome = answer.done ? 'done' : 'failed';
      log.info('controller.acts', { node, purpose: effect.purpose, outcome });
      await map.readThrough(answer.revision);
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      log.warn('controller.unknown', { node, purpose: effect.purpose, error: messageOf(error) });
      outcome = 'unknown';
      await this.#settled();
    }
    if (this.#feed === feed) {
      const at = clock.monotonic();
      feed({ type: 'map', view: map.view, at });
      feed({ type: 'outcome', id: effect.id, outcome, at });
    }
  }

  /** Waits until the map surely shows what became of everything sent. */
  async #settled(): Promise<void> {
    const { map, clock, parameters } = this.#options;
    while (this.#feed !== undefined && !this.#closed.signal.aborted) {
      try {
        await map.readFresh();
        return;
      } catch (error) {
        if (codeOf(error) === undefined) throw error;
        await sleep(clock, parameters.renewMs, this.#closed.signal).catch(() => undefined);
      }
    }
  }
}

/**
 * Lets a node stand for controller, and be it while it is elected, until disposed of. See `controllerStep` for what a
 * controller does.
 */
export function runController(options: ControllerOptions): RunningController {
  return new Controller(options);
}
