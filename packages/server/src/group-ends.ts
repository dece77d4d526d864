import {
  asGroupId,
  asPolicyId,
  type Ballot,
  type GroupKey,
  Reader,
  type Sequence,
  WebdfsError,
  Writer,
} from '@webdfs/base';
import { FIRST_FREE_VERB } from '@webdfs/replica';
import type { Store } from '@webdfs/store';
import { type Message, NO_ATTACHMENT } from '@webdfs/wire';

/** call: what a node has of some groups, whatever its part in them is. */
export const GROUP_ENDS = FIRST_FREE_VERB + 2;

/** Groups asked for at once. */
export const MAX_ENDS = 200;

/** A node's copy of a group. */
export interface GroupEnd extends GroupKey {
  /** `none`: there is nothing of it here; `learner`: not the whole group. */
  readonly role: 'member' | 'learner' | 'none';
  readonly last: Sequence;
  readonly lastBallot: Ballot;
  readonly commit: Sequence;
  readonly objects: number;
  readonly blocks: number;
  readonly bytes: number;
  /** Equal content, equal digest. */
  readonly digest: number;
}

const ROLES = ['none', 'member', 'learner'] as const;
const GROUP_BYTES = 6;
const END_BYTES = GROUP_BYTES + 1 + 7 * 8;

export function encodeEndsRequest(groups: readonly GroupKey[]): Message {
  const head = new Writer(2 + groups.length * GROUP_BYTES).u16(groups.length);
  for (const { policy, group } of groups) head.u16(policy).u32(group);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT, TOO_LARGE */
function decodeRequest({ head }: Message): GroupKey[] {
  const reader = new Reader(head);
  const count = reader.u16();
  if (count > MAX_ENDS) throw new WebdfsError('TOO_LARGE', `${count} groups at once, limit ${MAX_ENDS}`);
  const groups = Array.from({ length: count }, () => groupIn(reader));
  reader.end();
  return groups;
}

function groupIn(reader: Reader): GroupKey {
  return { policy: asPolicyId(reader.u16()), group: asGroupId(reader.u32()) };
}

/** Answers `GROUP_ENDS` from a store. @throws CORRUPT, TOO_LARGE */
export function answerEnds(store: Store, message: Message): Message {
  const groups = decodeRequest(message);
  const head = new Writer(2 + groups.length * END_BYTES).u16(groups.length);
  for (const group of groups) {
    const { last, lastBallot, commit, objects, blocks, bytes, digest, mark } = store.log(group);
    // a member of a group without entries has all of it
    const role = mark?.role ?? (last === 0 && objects === 0 && blocks === 0 ? 'none' : 'learner');
    head.u16(group.policy).u32(group.group).u8(ROLES.indexOf(role));
    for (const number of [last, lastBallot, commit, objects, blocks, bytes, digest]) head.u53(number);
  }
  return { head: head.take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT */
export function decodeEnds({ head }: Message): GroupEnd[] {
  const reader = new Reader(head);
  const count = Math.min(reader.u16(), MAX_ENDS);
  const ends = Array.from({ length: count }, (): GroupEnd => {
    const group = groupIn(reader);
    const role = ROLES[reader.u8()];
    if (role === undefined) throw new WebdfsError('CORRUPT', 'a group without a role');
    const [last, lastBallot, commit] = [reader.u53(), reader.u53(), reader.u53()];
    const [objects, blocks, bytes, digest] = [reader.u53(), reader.u53(), reader.u53(), reader.u53()];
    return { ...group, role, last, lastBallot, commit, objects, blocks, bytes, digest };
  });
  reader.end();
  return ends;
}
