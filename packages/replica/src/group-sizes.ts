import { asGroupId, asPolicyId, type PolicyId, Reader, WebdfsError, Writer } from '@webdfs/base';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { Attachment, putSection, takeSection } from './attachment.ts';
import type { ReplicaHost } from './replica-host.ts';
import { REQUEST_FORMAT, takeFormat } from './request-codec.ts';

/** Groups of one policy, by their numbers. */
export interface GroupRange {
  readonly policy: PolicyId;
  readonly first: number;
  readonly count: number;
}

/** Groups in one answer. */
export const MAX_SIZED_GROUPS = 16_384;

export function encodeGroupSizesRequest({ policy, first, count }: GroupRange): Message {
  return { head: new Writer(16).u8(REQUEST_FORMAT).u16(policy).u32(first).u32(count).take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
function decodeGroupSizesRequest(message: Message): GroupRange {
  const reader = new Reader(message.head);
  takeFormat(reader);
  const range = { policy: asPolicyId(reader.u16()), first: reader.u32(), count: reader.u32() };
  reader.end();
  if (range.count <= MAX_SIZED_GROUPS) return range;
  throw new WebdfsError('TOO_LARGE', `${range.count} groups were asked for, ${MAX_SIZED_GROUPS} is the most`);
}

/**
 * GROUP_SIZES: bytes of the objects and blocks of each group that this node is primary of; of the others it says nothing. The
 * answer names each group's place in the range, then its bytes.
 */
export function serveGroupSizes(host: Pick<ReplicaHost, 'self' | 'map' | 'store'>, message: Message): Message {
  const { policy, first, count } = decodeGroupSizesRequest(message);
  const { view } = host.map;
  const isKnown = view.map.policies.some(({ id }) => id === policy);
  const end = isKnown ? Math.min(first + count, 2 ** view.map.groupBits) : first;
  const rows = new Writer(4_096);
  for (let group = first; group < end; group++) {
    const key = { policy, group: asGroupId(group) };
    if (view.group(key).primary !== host.self) continue;
    const { bytes } = host.store.log(key);
    if (bytes > 0) rows.u32(group - first).u53(bytes);
  }
  const section = rows.take();
  const head = new Writer(16).u8(REQUEST_FORMAT);
  putSection(head, section);
  return { head: head.take(), attached: [section] };
}

const ROW_BYTES = 12;

/** Calls `tell` with each group and its bytes. @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeGroupSizes(
  message: Message,
  { first, count }: GroupRange,
  tell: (group: number, bytes: number) => void,
): void {
  const head = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(head);
  const section = takeSection(head, attachment, count * ROW_BYTES);
  head.end();
  attachment.end();
  const rows = new Reader(section);
  for (let row = 0; row < section.length / ROW_BYTES; row++) {
    const place = rows.u32();
    if (place >= count) throw new WebdfsError('CORRUPT', `group ${place} of ${count} that were asked for`);
    tell(first + place, rows.u53());
  }
  rows.end();
}
