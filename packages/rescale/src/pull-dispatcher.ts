import { assert, type NodeId } from '@webdfs/base';
import type { IOEffect, IOEvent } from './io-step.ts';
import type { Transfer } from './parcel.ts';
import { TurnQueue } from './turn-queue.ts';

export interface PullLimits {
  /** Bytes that a node has asked for and not yet made durable. One transfer is always allowed. */
  readonly windowBytes: number;
  /** Bytes that a node keeps in memory because they are to be sent once more; beyond, the oldest are read again. */
  readonly keepBytes: number;
  /** Reads and writes that a node's device, and sends that its link has at once; what waits has its turn by the plan. */
  readonly depth: number;
}

/**
 * One node's part of a plan: it pulls what it is to get, in order, a window at a time, and serves what others ask for. A parcel that
 * goes to several nodes is read once and kept until the last has it; one that is still on its way is served when it arrives.
 *
 * Device and link work in the order of the plan, too, not in that of arrival: so all nodes stand at about the same turn, and no
 * window fills with what a slower neighbour owes.
 *
 * A step machine: events in, effects out; storage, network and time are the caller's. It is told only its own node's events.
 */
export class PullDispatcher {
  readonly #node: NodeId;
  readonly #limits: PullLimits;
  readonly #pulls: readonly Transfer[];
  #next = 0;
  #openBytes = 0;
  #unwritten: number;
  readonly #device: TurnQueue<IOEffect>;
  readonly #link: TurnQueue<IOEffect>;
  /** Copies of a parcel that this node has still to send. */
  readonly #sendsLeft = new Map<number, number>();
  /** Parcels in memory, oldest first; `uses` counts the write and the sends that are waiting or under way. */
  readonly #kept = new Map<number, { readonly bytes: number; uses: number }>();
  #keptBytes = 0;
  /** Parcels that are on this node's device. */
  readonly #stored = new Set<number>();
  /** What waits for a parcel to be read or to arrive. */
  readonly #waiting = new Map<number, Transfer[]>();

  /** @param transfers  of the whole plan or of this node, in the order of their turns */
  constructor(node: NodeId, transfers: readonly Transfer[], limits: PullLimits) {
    this.#node = node;
    this.#limits = limits;
    this.#device = new TurnQueue(limits.depth);
    this.#link = new TurnQueue(limits.depth);
    this.#pulls = transfers.filter(({ to }) => to === node);
    this.#unwritten = this.#pulls.length;
    for (const { from, parcel, depth } of transfers) {
      if (from !== node) continue;
      this.#sendsLeft.set(parcel, (this.#sendsLeft.get(parcel) ?? 0) + 1);
      if (depth === 0) this.#stored.add(parcel);
    }
  }

  /** Everything this node is to get is durable. */
  get done(): boolean {
    return this.#unwritten === 0;
  }

  step(event: IOEvent): IOEffect[] {
    const effects = this.#answer(event);
    return [...effects, ...this.#device.begin(), ...this.#link.begin()];
  }

  #answer(event: IOEvent): IOEffect[] {
    switch (event.type) {
      case 'started':
        return this.#pull();
      case 'asked':
        this.#serve(event.transfer);
        return [];
      case 'read':
        this.#device.finish();
        return this.#arrived(event.parcel, this.#waiting.get(event.parcel)?.[0]?.bytes ?? 0);
      case 'sent':
        this.#link.finish();
        return this.#sent(event.transfer.parcel);
      case 'received':
        return this.#received(event.transfer);
      case 'written':
        this.#device.finish();
        return this.#written(event.transfer);
      case 'woke':
        return [];
    }
  }

  #pull(): IOEffect[] {
    const asks: IOEffect[] = [];
    for (; this.#next < this.#pulls.length; this.#next++) {
      const transfer = this.#pulls[this.#next]!;
      if (this.#openBytes > 0 && this.#openBytes + transfer.bytes > this.#limits.windowBytes) break;
      this.#openBytes += transfer.bytes;
      asks.push({ type: 'ask', transfer });
    }
    return asks;
  }

  #serve(transfer: Transfer): void {
    const { parcel, bytes } = transfer;
    if (this.#kept.has(parcel)) return this.#send(transfer);
    const waiting = this.#waiting.get(parcel);
    if (waiting !== undefined) {
      waiting.push(transfer);
      return;
    }
    this.#waiting.set(parcel, [transfer]);
    if (this.#stored.has(parcel)) this.#device.add(transfer, { type: 'read', node: this.#node, parcel, bytes });
  }

  #send(transfer: Transfer): void {
    this.#kept.get(transfer.parcel)!.uses += 1;
    this.#link.add(transfer, { type: 'send', transfer });
  }

  /** A parcel is in memory, read or received: it goes to all who wait for it, and stays until the last copy is sent. */
  #arrived(parcel: number, bytes: number): IOEffect[] {
    const keep: IOEffect[] = this.#kept.has(parcel) ? [] : [{ type: 'keep', node: this.#node, parcel }];
    if (keep.length > 0) {
      this.#kept.set(parcel, { bytes, uses: 0 });
      this.#keptBytes += bytes;
    }
    for (const transfer of this.#waiting.get(parcel) ?? []) this.#send(transfer);
    this.#waiting.delete(parcel);
    return [...keep, ...this.#makeRoom()];
  }

  #received(transfer: Transfer): IOEffect[] {
    const effects = this.#arrived(transfer.parcel, transfer.bytes);
    this.#kept.get(transfer.parcel)!.uses += 1;
    this.#device.add(transfer, { type: 'write', transfer });
    return effects;
  }

  #written(transfer: Transfer): IOEffect[] {
    this.#openBytes -= transfer.bytes;
    this.#unwritten -= 1;
    assert(this.#unwritten >= 0, 'no transfer is written twice');
    this.#stored.add(transfer.parcel);
    return [...this.#used(transfer.parcel), ...this.#pull()];
  }

  #sent(parcel: number): IOEffect[] {
    const left = this.#sendsLeft.get(parcel)! - 1;
    assert(left >= 0, 'no copy is sent twice');
    if (left > 0) this.#sendsLeft.set(parcel, left);
    else this.#sendsLeft.delete(parcel);
    return this.#used(parcel);
  }

  #used(parcel: number): IOEffect[] {
    const kept = this.#kept.get(parcel)!;
    kept.uses -= 1;
    if (kept.uses === 0 && !this.#sendsLeft.has(parcel)) return [this.#forget(parcel)];
    return [];
  }

  /** Forgets the oldest of what is kept for later, if that can be read again. */
  #makeRoom(): IOEffect[] {
    const forgotten: IOEffect[] = [];
    for (const [parcel, { uses }] of this.#kept) {
      if (this.#keptBytes <= this.#limits.keepBytes) break;
      if (uses === 0 && this.#stored.has(parcel)) forgotten.push(this.#forget(parcel));
    }
    return forgotten;
  }

  #forget(parcel: number): IOEffect {
    this.#keptBytes -= this.#kept.get(parcel)!.bytes;
    this.#kept.delete(parcel);
    return { type: 'forget', node: this.#node, parcel };
  }
}
