import {
  codeOf,
  type GroupKey,
  groupNumber,
  messageOf,
  type NodeId,
  type Timer,
  toHex,
  WebdfsError,
} from '@webdfs/base';
import { BLOCK_ID_BYTES, type Damage } from '@webdfs/store';
import { copyBlock, fromAny } from './block-transfer.ts';
import { fetchEntry } from './entry-fetch.ts';
import type { ReplicaHost } from './replica-host.ts';
import { Turns } from './turns.ts';
import { verifyItems } from './verify.ts';
import type { VerifyItem } from './verify-codec.ts';

export interface RepairLimits {
  /** Copies replaced at once. */
  readonly atOnce: number;
  /** Damaged things that wait for their turn; more are found again by the next look. */
  readonly waiting: number;
  /** Between looks at all damage that the store knows of, milliseconds. */
  readonly lookMs: number;
}

export const REPAIR_LIMITS: RepairLimits = { atOnce: 2, waiting: 4_096, lookMs: 60_000 };

/**
 * Replaces damaged copies on this node by those of other members, whoever found the damage: a read, compaction, the
 * scrubber, `webdfs where`. A copy is replaced only by the same version, verified on its way.
 */
export class Repair {
  readonly #host: ReplicaHost;
  readonly #limits: RepairLimits;
  readonly #turns: Turns;
  readonly #stop = new AbortController();
  readonly #waiting = new Set<string>();
  #timer: Timer | undefined;
  #counters = { repaired: 0, unrepaired: 0 };

  constructor(host: ReplicaHost, limits: Partial<RepairLimits> = {}) {
    this.#host = host;
    this.#limits = { ...REPAIR_LIMITS, ...limits };
    this.#turns = new Turns(this.#limits.atOnce);
  }

  start(): void {
    this.#host.store.onDamage((damage) => this.#add(damage));
    this.#look();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#stop.abort(new WebdfsError('CANCELLED', 'the node is stopping'));
  }

  /** Copies replaced, and tries that came to nothing. */
  counters(): Readonly<Record<'repaired' | 'unrepaired', number>> {
    return this.#counters;
  }

  /** What could not be repaired when it was found, and what earlier runs of the node knew. */
  #look(): void {
    void this.#host.store.damage().then((all) => {
      for (const damage of all) this.#add(damage);
    });
    this.#timer = this.#host.clock.after(this.#limits.lookMs, () => this.#look());
  }

  #add({ key, group }: Damage): void {
    if (key === undefined || group === undefined || this.#stop.signal.aborted) return;
    const name = `${groupNumber(group)}/${toHex(key)}`;
    if (this.#waiting.has(name) || this.#waiting.size >= this.#limits.waiting) return;
    this.#waiting.add(name);
    void this.#turns.run(() => this.#repair(group, key)).finally(() => this.#waiting.delete(name));
  }

  async #repair(group: GroupKey, key: Uint8Array): Promise<void> {
    const { store, log } = this.#host;
    if (this.#stop.signal.aborted) return;
    const fields = { policy: group.policy, group: group.group, key: toHex(key) };
    try {
      const item = this.#itemOf(group, key);
      // what is not there any more, or was replaced meanwhile, needs nothing
      if (item === undefined || (await this.#version(item)) === undefined) return;
      const others = this.#others(group);
      if (others.length === 0) return;
      await fromAny(others, (node) => this.#replace(item, node));
      if ((await verifyItems(store, [item], this.#stop.signal))[0]?.state !== 'intact') {
        throw new WebdfsError('CORRUPT', 'the copy is damaged still');
      }
      this.#counters.repaired++;
      log.info('damaged copy replaced', fields);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      if (!(error instanceof WebdfsError)) throw error;
      this.#counters.unrepaired++;
      log.warn('damaged copy not replaced', { ...fields, code: codeOf(error), why: messageOf(error) });
    }
  }

  #itemOf(group: GroupKey, key: Uint8Array): VerifyItem | undefined {
    const { store } = this.#host;
    const row = store.find(key);
    const bare = { policy: group.policy, group: group.group, id: key };
    if (row !== undefined && row.group === group.group && row.policy === group.policy)
      return { ...bare, type: 'record' };
    if (key.length !== BLOCK_ID_BYTES || store.findBlock(group, key) === undefined) return undefined;
    return { ...bare, type: 'block' };
  }

  /** The version that is damaged here; undefined: it is not. */
  async #version(item: VerifyItem): Promise<number | undefined> {
    const [result] = await verifyItems(this.#host.store, [item], this.#stop.signal);
    return result?.state === 'damaged' ? result.sequence : undefined;
  }

  /** Members in sync hold the same; a node that learns has its source for that. */
  #others(group: GroupKey): NodeId[] {
    const { inSync } = this.#host.map.view.group(group);
    return inSync.includes(this.#host.self) ? inSync.filter((node) => node !== this.#host.self) : [];
  }

  async #replace(item: VerifyItem, node: NodeId): Promise<void> {
    const { store } = this.#host;
    const link = this.#host.link(node);
    const entry = await fetchEntry(link, item, { type: item.type, key: item.id });
    const here = item.type === 'record' ? store.find(item.id) : store.findBlock(item, item.id);
    if (here === undefined) return;
    if (entry.sequence !== here.sequence) {
      throw new WebdfsError('NOT_FOUND', `node ${node} has version ${entry.sequence}, not ${here.sequence}`);
    }
    if (item.type === 'block') await copyBlock(store, link, entry, this.#stop.signal);
    await store.install(entry);
  }
}
