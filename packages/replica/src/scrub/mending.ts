import { asNodeId, codeOf, equalBytes, type NodeId, WebdfsError } from '@webdfs/base';
import type { LogEntry } from '@webdfs/store';
import { type Message, NO_ATTACHMENT } from '@webdfs/wire';
import { copyBlock, fromAny } from '../block-transfer.ts';
import { fetchEntry } from '../entry-fetch.ts';
import type { ReplicaHost } from '../replica-host.ts';
import { REQUEST_FORMAT } from '../request-codec.ts';
import { blockGoneOf, tombstoneOf } from '../synthetic-entry.ts';
import { VERB } from '../verbs.ts';
import { type BuryOrder, decodeBury, decodeMend, encodeBury, encodeMend, type MendOrder } from './look-codec.ts';
import { checkOf } from './looking.ts';

const CALL_MS = 60_000;
const DONE: Message = { head: Uint8Array.of(REQUEST_FORMAT), attached: NO_ATTACHMENT };

/** Has a node replace its copy by the version that others have. @throws what the node and the link to it throw */
export async function orderMend(host: ReplicaHost, node: NodeId, order: MendOrder, signal: AbortSignal): Promise<void> {
  await host.link(node).call(VERB.MEND, encodeMend(order), { deadlineMs: CALL_MS, signal });
}

/** Has a node give up a copy of something that was deleted. @throws what the node and the link to it throw */
export async function orderBurial(
  host: ReplicaHost,
  node: NodeId,
  order: BuryOrder,
  signal: AbortSignal,
): Promise<void> {
  await host.link(node).call(VERB.BURY, encodeBury(order), { deadlineMs: CALL_MS, signal });
}

/**
 * MEND at the member: gets the version named, verified on its way, and puts it in the place of what is here. An order that
 * has been overtaken does no harm: a newer version, or a tombstone, stays.
 *
 * @throws NOT_FOUND, CHECKSUM_MISMATCH if nobody named has it so, CONFLICT if this node is no member of the group; the
 * errors of links and disk
 */
export async function serveMend(host: ReplicaHost, message: Message, signal: AbortSignal): Promise<Message> {
  const order = decodeMend(message);
  const { item, sources } = order;
  if (!host.map.view.group(item).inSync.includes(host.self)) {
    throw new WebdfsError('CONFLICT', `node ${host.self} is no member in sync of group ${item.policy}/${item.group}`);
  }
  const others = sources.map(asNodeId).filter((node) => node !== host.self);
  await fromAny(others, async (node) => {
    const link = host.link(node);
    const entry = await fetchEntry(link, item, { type: item.type, key: item.id });
    checkIsOrdered(entry, order);
    if (item.type === 'block') await copyBlock(host.store, link, entry, signal);
    await host.store.install(entry);
  });
  host.log.info('copy mended', { policy: item.policy, group: item.group, what: item.type, sequence: order.sequence });
  return DONE;
}

function checkIsOrdered(entry: LogEntry, { item, sequence, check }: MendOrder): void {
  if (!equalBytes(entry.key, item.id) || entry.sequence !== sequence) {
    throw new WebdfsError('NOT_FOUND', `version ${entry.sequence} is there, not ${sequence}`);
  }
  if (check !== 0 && checkOf(entry) !== check) {
    throw new WebdfsError('CHECKSUM_MISMATCH', `version ${sequence} is another than was judged right`);
  }
}

/**
 * BURY at the member. Only the group's primary may order it, in the ballot of this node's own map; what was written after
 * `asOf` stays.
 *
 * @throws STALE_BALLOT, CONFLICT; the errors of the disk
 */
export async function serveBurial(host: ReplicaHost, message: Message, from: NodeId): Promise<Message> {
  const { item, hashHigh, hashLow, asOf, ballot } = decodeBury(message);
  const view = host.map.view.group(item);
  if (view.ballot !== ballot || view.primary !== from) {
    throw new WebdfsError('STALE_BALLOT', `group ${item.policy}/${item.group} has another primary`, {
      details: { revision: host.map.view.revision },
    });
  }
  const { store, clock } = host;
  const here = item.type === 'record' ? store.find(item.id) : store.findBlock(item, item.id);
  if (here === undefined) return DONE;
  if (here.sequence >= asOf) throw new WebdfsError('CONFLICT', `version ${here.sequence} is newer than ${asOf}`);
  const group = { policy: item.policy, group: item.group };
  const synthesis = { group, ballot, sequence: asOf, timeMs: clock.now() };
  const isBlock = item.type === 'block';
  await store.install(
    isBlock ? blockGoneOf(synthesis, item.id) : tombstoneOf(synthesis, { key: item.id, hashHigh, hashLow }),
  );
  host.log.info('copy of a deleted thing removed', { ...group, what: item.type, sequence: here.sequence });
  return DONE;
}

/** Whether a failure of an order is one of the copy, to be reported, and not of this program. */
export function isRefusal(error: unknown): error is WebdfsError {
  return codeOf(error) !== undefined && codeOf(error) !== 'CANCELLED';
}
