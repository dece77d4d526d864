import type { NodeId } from '@webdfs/base';
import type { Resource } from './bounds.ts';
import type { Transfer } from './parcel.ts';
import { type Rates, secondsFor } from './rates.ts';

/** Bytes that a node takes in, sends, reads from its device and writes to it. */
export interface Usage {
  readonly receive: number;
  readonly send: number;
  readonly read: number;
  readonly write: number;
}

/** Which node and which of its resources is busy longest. */
export interface Pace {
  readonly node: NodeId;
  readonly resource: Resource;
  readonly seconds: number;
}

/** How long a node is busy at least, and with what. */
export function paceOf(node: NodeId, usage: Usage, rates: Rates): Pace {
  const device = secondsFor(usage.read, rates.read) + secondsFor(usage.write, rates.write);
  const candidates: Pace[] = [
    { node, resource: 'receive', seconds: secondsFor(usage.receive, rates.network) },
    { node, resource: 'send', seconds: secondsFor(usage.send, rates.network) },
    { node, resource: usage.read === 0 ? 'write' : usage.write === 0 ? 'read' : 'device', seconds: device },
  ];
  return slowest(candidates)!;
}

export function slowest(paces: Iterable<Pace>): Pace | undefined {
  let most: Pace | undefined;
  for (const pace of paces) if (most === undefined || pace.seconds > most.seconds) most = pace;
  return most;
}

/** What some transfers take of each node: every copy is sent, received and written; a parcel is read once by whoever had it. */
export function usageOf(transfers: Iterable<Transfer>): Map<NodeId, Usage> {
  const usages = new Map<NodeId, { -readonly [Key in keyof Usage]: number }>();
  const of = (node: NodeId): { -readonly [Key in keyof Usage]: number } => {
    const known = usages.get(node);
    if (known !== undefined) return known;
    const usage = { receive: 0, send: 0, read: 0, write: 0 };
    usages.set(node, usage);
    return usage;
  };
  const read = new Set<string>();
  for (const { parcel, bytes, from, to, depth } of transfers) {
    const [source, target] = [of(from), of(to)];
    source.send += bytes;
    target.receive += bytes;
    target.write += bytes;
    if (depth > 0 || read.has(`${parcel}@${from}`)) continue;
    read.add(`${parcel}@${from}`);
    source.read += bytes;
  }
  return usages;
}
