import { type NodeId, WebdfsError } from '@webdfs/base';

/**
 * A unit of planning: bytes that lie whole on some nodes and must come to others. A block, or a part of a group: small enough
 * that sources can be balanced with it.
 */
export interface Parcel {
  /** The caller's own name for it, unique in a plan. */
  readonly id: number;
  readonly bytes: number;
  /** Nodes that have it and may serve it; at least one. */
  readonly holders: readonly NodeId[];
  /** Nodes that have to get it; none of the holders. */
  readonly receivers: readonly NodeId[];
  /** Copies on nodes that neither leave nor failed: where they are fewest, copying is most urgent. */
  readonly safeCopies: number;
}

/** One parcel from one node to another. A plan has exactly one per parcel and receiver. */
export interface Transfer {
  /** The parcel's id. */
  readonly parcel: number;
  readonly bytes: number;
  readonly from: NodeId;
  readonly to: NodeId;
  /** 0: `from` holds the parcel at the start; else it gets it within the plan, by a transfer one less deep. */
  readonly depth: number;
  /** When its turn is: 0 at the start of the plan, 1 at its end. */
  readonly key: number;
}

/** The order in which receivers pull. It is one order everywhere, so that nobody waits for each other in a circle. */
export function compareTurns(a: Transfer, b: Transfer): number {
  return a.key - b.key || a.depth - b.depth || a.parcel - b.parcel || a.to - b.to;
}

/** @throws WebdfsError LOST if nobody has a parcel, INVALID if a parcel makes no sense */
export function checkParcels(parcels: readonly Parcel[]): void {
  const seen = new Set<number>();
  for (const { id, bytes, holders, receivers } of parcels) {
    if (seen.has(id)) throw new WebdfsError('INVALID', `two parcels are called ${id}`);
    seen.add(id);
    if (!(bytes >= 0 && bytes < Infinity)) throw new WebdfsError('INVALID', `parcel ${id} has ${bytes} bytes`);
    if (holders.length === 0) throw new WebdfsError('LOST', `parcel ${id} has no holder that could serve it`);
    const nodes = new Set([...holders, ...receivers]);
    if (nodes.size < holders.length + receivers.length) {
      throw new WebdfsError('INVALID', `parcel ${id} names a node twice: ${[...holders, ...receivers].join(', ')}`);
    }
  }
}
