import { asGroupId, asPolicyId, Reader, WebdfsError, Writer } from '@webdfs/base';
import type { LogEntry } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { Attachment, putSection, takeSection } from './attachment.ts';
import { putEntry, takeEntry } from './message-codec.ts';
import { putGroup, REQUEST_FORMAT, takeFormat, takeGroup } from './request-codec.ts';
import { MAX_VERIFY_ITEMS, type VerifyItem } from './verify-codec.ts';

/** Things asked for in one FETCH_KEYS. */
export const MAX_FETCH_ITEMS = MAX_VERIFY_ITEMS;
/** Bytes of entries in one answer; what does not fit is asked for again. */
export const MAX_FETCH_BYTES = 655_360;
const MAX_PACKED_BYTES = 786_432;
const STATES = ['absent', 'damaged', 'entry'] as const;

/** What a member has of a thing asked for: its newest applied entry, nothing, or one that cannot be read. */
export type Fetched = { readonly state: 'absent' | 'damaged' } | { readonly state: 'entry'; readonly entry: LogEntry };

/** The items travel as those of VERIFY. */
export type FetchItem = VerifyItem;

/** Answers for the first items asked for, in their order; at least one. */
export function encodeFetched(answers: readonly Fetched[]): Message {
  const packed = new Writer(256 + answers.length * 256);
  const bodies: Uint8Array[] = [];
  for (const answer of answers) {
    packed.u8(STATES.indexOf(answer.state));
    if (answer.state !== 'entry') continue;
    putGroup(packed, answer.entry);
    putEntry(packed, answer.entry, bodies);
  }
  const section = packed.take();
  const head = new Writer(16).u8(REQUEST_FORMAT).u16(answers.length);
  putSection(head, section);
  return { head: head.take(), attached: [section, ...bodies] };
}

/** Bodies are verified, nothing refers to the message. @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeFetched(message: Message): Fetched[] {
  const head = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(head);
  const count = head.u16();
  if (count > MAX_FETCH_ITEMS) throw new WebdfsError('TOO_LARGE', `${count} entries, limit ${MAX_FETCH_ITEMS}`);
  const packed = new Reader(takeSection(head, attachment, MAX_PACKED_BYTES).slice());
  head.end();
  const answers: Fetched[] = [];
  for (let i = 0; i < count; i++) {
    const state = STATES[packed.u8()];
    if (state === undefined) throw new WebdfsError('CORRUPT', 'fetched thing has an unknown state');
    if (state !== 'entry') {
      answers.push({ state });
      continue;
    }
    const { policy, group } = takeGroup(packed);
    const key = { policy: asPolicyId(policy), group: asGroupId(group) };
    answers.push({ state, entry: takeEntry(packed, attachment, key) });
  }
  packed.end();
  attachment.end();
  return answers;
}
