import { type GroupKey, type Log, type NodeId, WebdfsError } from '@webdfs/base';
import type { LogEntry, Store } from '@webdfs/store';
import type { Link } from '@webdfs/wire';
import { fetchTail } from './entry-fetch.ts';
import type { GroupEvent, RareEffect } from './events.ts';
import type { EngineHooks } from './hooks.ts';

/** An event without its time. */
type Answer =
  | Omit<Extract<GroupEvent, { type: 'marked' }>, 'at'>
  | Omit<Extract<GroupEvent, { type: 'loaded' }>, 'at'>
  | Omit<Extract<GroupEvent, { type: 'fetched' }>, 'at'>;

export interface RareEffectsOptions {
  readonly store: Store;
  readonly link: (node: NodeId) => Link;
  readonly hooks: EngineHooks;
  readonly log: Log;
  readonly offer: (key: GroupKey, answer: Answer) => void;
  readonly failed: (error: unknown) => void;
}

/** Performs what changes of a group ask for: marks, takeovers' reading and fetching, and what the node must be told. */
export class RareEffects {
  readonly #options: RareEffectsOptions;

  constructor(options: RareEffectsOptions) {
    this.#options = options;
  }

  perform(key: GroupKey, effect: RareEffect): void {
    const { store, hooks, log, offer } = this.#options;
    const { policy, group } = key;
    switch (effect.type) {
      case 'mark':
        return this.#later(store.mark(key, effect.mark), () => offer(key, { type: 'marked' }));
      case 'load':
        return this.#later(store.pending(key), (entries) => {
          offer(key, { type: 'loaded', ballot: effect.ballot, entries });
        });
      case 'fetch':
        void this.#fetch(key, effect);
        return;
      case 'complain':
        log.warn('member does not follow', { policy, group, node: effect.node, what: effect.what });
        return hooks.complain?.(key, effect.node, effect.what);
      case 'disk-is-old':
        log.error('this disk lacks committed entries', { policy, group, commit: effect.commit });
        return hooks.diskIsOld?.(key);
      case 'learner-refused':
        return hooks.learnerRefused?.(key, effect.node);
      case 'learner-lost':
        return hooks.learnerLost?.(key, effect.node, effect.why);
    }
  }

  async #fetch(key: GroupKey, effect: Extract<RareEffect, { type: 'fetch' }>): Promise<void> {
    const { ballot, from, after, upTo } = effect;
    let entries: readonly LogEntry[] = [];
    try {
      entries = await fetchTail(this.#options.link(from), key, { after, upTo });
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
    }
    this.#options.offer(key, { type: 'fetched', ballot, entries });
  }

  /** The disk's answer, or its end. */
  #later<Value>(promise: Promise<Value>, then: (value: Value) => void): void {
    void promise.then(then, (error: unknown) => this.#options.failed(error));
  }
}
