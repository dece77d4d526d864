import type { NodeId } from '@webdfs/base';
import type { IOEffect, IOEvent, Transfer } from '@webdfs/rescale';
import type { Dispatch, IODispatcher } from '../parts.ts';

/** How HDFS limits itself; figures of its default configuration. */
export interface HdfsLimits {
  /** Transfers that a node serves at once. */
  readonly streams: number;
  /** Transfers that a node receives at once. */
  readonly incoming: number;
  /** What a node may send or receive in one round, bytes; then all wait until the round has ended. */
  readonly roundBytes: number;
  /** Seconds between rounds. */
  readonly pauseSeconds: number;
}

/** `dfs.namenode.replication.max-streams`; rounds are the balancer's alone. */
export const DECOMMISSION_LIMITS: HdfsLimits = {
  streams: 2,
  incoming: Infinity,
  roundBytes: Infinity,
  pauseSeconds: 0,
};
/**
 * The balancer: `dfs.datanode.balance.max.concurrent.moves`, `dfs.balancer.max-size-to-move`, and between iterations two heartbeats and
 * one replication interval. Its limit of bandwidth is taken as lifted.
 */
export const COMMISSION_LIMITS: HdfsLimits = { streams: 5, incoming: 5, roundBytes: 10e9, pauseSeconds: 9 };

class HdfsDispatch implements Dispatch {
  readonly #limits: HdfsLimits;
  #pending: Transfer[];
  #active = 0;
  #pausing = false;
  readonly #serving = new Map<NodeId, number>();
  readonly #receiving = new Map<NodeId, number>();
  /** Bytes of this round by node and direction. */
  readonly #out = new Map<NodeId, number>();
  readonly #in = new Map<NodeId, number>();
  /** Chunks that are being read or sent, by node and chunk. */
  readonly #serves = new Map<string, Transfer>();

  constructor(transfers: readonly Transfer[], limits: HdfsLimits) {
    this.#pending = [...transfers];
    this.#limits = limits;
  }

  step(event: IOEvent): IOEffect[] {
    switch (event.type) {
      case 'started':
        return this.#begin();
      case 'woke':
        this.#pausing = false;
        return this.#begin();
      case 'read':
        return this.#read(event.node, event.parcel);
      case 'sent':
        add(this.#serving, event.transfer.from, -1);
        this.#serves.delete(`${event.transfer.from}:${event.transfer.parcel}`);
        return [{ type: 'forget', node: event.transfer.from, parcel: event.transfer.parcel }, ...this.#begin()];
      case 'received':
        return [
          { type: 'keep', node: event.transfer.to, parcel: event.transfer.parcel },
          { type: 'write', transfer: event.transfer },
        ];
      case 'written':
        this.#active -= 1;
        add(this.#receiving, event.transfer.to, -1);
        return [{ type: 'forget', node: event.transfer.to, parcel: event.transfer.parcel }, ...this.#begin()];
      case 'asked':
        return [];
    }
  }

  #mayBegin({ from, to, parcel, bytes }: Transfer): boolean {
    const { streams, incoming, roundBytes } = this.#limits;
    return (
      (this.#serving.get(from) ?? 0) < streams &&
      (this.#receiving.get(to) ?? 0) < incoming &&
      (this.#out.get(from) ?? 0) + bytes <= roundBytes &&
      (this.#in.get(to) ?? 0) + bytes <= roundBytes &&
      // one stream of a chunk from one node at a time
      !this.#serves.has(`${from}:${parcel}`)
    );
  }

  #begin(): IOEffect[] {
    if (this.#pausing) return [];
    const begun: IOEffect[] = [];
    this.#pending = this.#pending.filter((transfer) => {
      if (!this.#mayBegin(transfer)) return true;
      const { from, to, parcel, bytes } = transfer;
      this.#active += 1;
      add(this.#serving, from, 1);
      add(this.#receiving, to, 1);
      add(this.#out, from, bytes);
      add(this.#in, to, bytes);
      this.#serves.set(`${from}:${parcel}`, transfer);
      begun.push({ type: 'read', node: from, parcel, bytes });
      return false;
    });
    if (begun.length > 0 || this.#active > 0 || this.#pending.length === 0) return begun;
    this.#pausing = true;
    this.#out.clear();
    this.#in.clear();
    return [{ type: 'wait', seconds: this.#limits.pauseSeconds }];
  }

  #read(node: NodeId, parcel: number): IOEffect[] {
    return [
      { type: 'keep', node, parcel },
      { type: 'send', transfer: this.#serves.get(`${node}:${parcel}`)! },
    ];
  }
}

function add(counts: Map<NodeId, number>, node: NodeId, more: number): void {
  counts.set(node, (counts.get(node) ?? 0) + more);
}

/** HDFS's way: sources push, a few streams at a time; its balancer works in rounds. */
export function hdfsDispatcher(limits: HdfsLimits): IODispatcher {
  return { name: 'HDFS-like', open: (transfers) => new HdfsDispatch(transfers, limits) };
}
