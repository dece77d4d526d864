import { type Clock, codeOf, type Log, messageOf, type NodeId, type Timer } from '@webdfs/base';
import { CONTROLLER_KEY, endedRescale, openRescale, proposeAccount, rescalesIn } from '@webdfs/cluster';
import type { ClusterAccess } from '../cluster-access.ts';
import { accountAfter, isOver } from './account.ts';
import { sightOf } from './sight.ts';

export interface KeeperOptions {
  readonly access: Pick<ClusterAccess, 'map' | 'mapStore' | 'link' | 'clock'>;
  readonly self: NodeId;
  readonly clock: Clock;
  readonly log: Log;
}

/** Between looks at a change that goes on: what a node moved since the last is lost to the account if the node is. */
const LOOK_MS = 3_000;

/**
 * Keeps the account of the change under way, on the node that is the controller: adds up what nodes moved, notes the
 * measured bound, and ends the account when the target is reached. All it knows is in the map store, so that the next
 * controller goes on with it.
 */
export class AccountKeeper implements Disposable {
  readonly #options: KeeperOptions;
  readonly #stopSeeing: () => void;
  #timer: Timer | undefined;
  #isLooking = false;
  #isStopped = false;
  /** The map's revision and the controller that were looked at last, when nothing went on. */
  #quietAt = '';

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#stopSeeing = options.access.map.onChange(() => this.#lookSoon(0));
    this.#lookSoon(0);
  }

  [Symbol.dispose](): void {
    this.#isStopped = true;
    this.#stopSeeing();
    this.#timer?.cancel();
  }

  #controller(): number | undefined {
    const controller = this.#options.access.map.view.controller();
    return controller?.info.node === this.#options.self ? controller.createRevision : undefined;
  }

  /** Who is controller, and what is under way; nothing is to be looked at while both stay as they were and nothing went on. */
  #situation(): string {
    return `${this.#controller()} ${this.#options.access.map.view.mapRevision}`;
  }

  #lookSoon(afterMs: number): void {
    if (this.#isStopped || this.#isLooking || this.#controller() === undefined) return;
    if (afterMs === 0 && this.#situation() === this.#quietAt) return;
    // what is under way has its timer: other changes of the map, such as a group that moved, are no reason
    if (afterMs === 0 && this.#timer !== undefined && this.#options.access.map.view.map.target !== undefined) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(afterMs, () => {
      this.#timer = undefined;
      this.#isLooking = true;
      void this.#look().then((goesOn) => {
        this.#isLooking = false;
        this.#lookSoon(goesOn ? LOOK_MS : 0);
      });
    });
  }

  /** @returns whether a change goes on */
  async #look(): Promise<boolean> {
    const { access, clock, log } = this.#options;
    const situation = this.#situation();
    const controller = this.#controller();
    try {
      const contents = await access.mapStore.read();
      await access.map.readThrough(contents.revision);
      const kept = openRescale(rescalesIn(contents));
      if (kept === undefined || controller === undefined) {
        this.#quietAt = situation;
        return false;
      }
      const nowMs = clock.now();
      const record = accountAfter(kept.record, await sightOf(access, nowMs));
      const isEnd = isOver(record, access.map.view);
      const end = { outcome: 'settled', endedMs: nowMs, groups: record.planned.groups } as const;
      const is = [{ type: 'created', key: CONTROLLER_KEY, is: controller }] as const;
      await access.mapStore.transact(proposeAccount(kept, isEnd ? endedRescale(record, end) : record, is));
      return true;
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      log.warn('account of the rescale was not written', { why: messageOf(error) });
      return true;
    }
  }
}
