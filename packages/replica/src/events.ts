import type { Ballot, GroupKey, NodeId, Revision, Sequence, WebdfsError } from '@webdfs/base';
import type { GroupView, MembershipChange, Proposal as MembershipProposal } from '@webdfs/cluster';
import type { GroupMark, LogEntry, RecordRow } from '@webdfs/store';
import type { ProtocolMessage } from './messages.ts';
import type { ReplicaParameters } from './parameters.ts';
import type { RequestTable } from './request-table.ts';
import type { WriteAnswer, WriteRequest } from './requests.ts';

/**
 * What happens to a group, and what it asks of its node in answer. The steps (member.ts, takeover.ts, primary.ts) are
 * deterministic: they change the group's state in place and push effects; clock, disk and network are the engine's.
 *
 * Times (`at`) are milliseconds of the node's monotonic clock.
 */

/** Something to be given a place in a group's log. The answer comes as an effect `answer` with the same `ticket`. */
export type Proposal =
  | {
      readonly type: 'write';
      readonly ticket: number;
      readonly request: WriteRequest;
      /** CRC-32C of each 64 KiB of the body, where whoever received it has them. */
      readonly sums?: Uint32Array;
      readonly nowMs: number;
    }
  /** The block's bytes are staged and finished here. */
  | {
      readonly type: 'block';
      readonly ticket: number;
      readonly id: Uint8Array;
      readonly hashHigh: number;
      readonly hashLow: number;
      /** What the meta holds after the request id. */
      readonly owner: Uint8Array;
      readonly size: number;
      readonly sums: Uint32Array;
      readonly nowMs: number;
    }
  | { readonly type: 'block-gone'; readonly ticket: number; readonly id: Uint8Array; readonly nowMs: number }
  /** A note of the group (fences, garbage, …); `value` undefined removes it (an empty value). */
  | {
      readonly type: 'note';
      readonly ticket: number;
      readonly name: Uint8Array;
      readonly value: Uint8Array;
      readonly nowMs: number;
    };

/** What a proposal or a request came to. A block or note answers with `replaced` undefined. */
export type Outcome =
  | { readonly type: 'done'; readonly answer: WriteAnswer }
  | { readonly type: 'refused'; readonly error: WebdfsError };

export type GroupEvent =
  /** The newest view of the group, where it differs from the one before. */
  | { readonly type: 'view'; readonly view: GroupView; readonly at: number }
  | {
      readonly type: 'message';
      readonly from: NodeId;
      readonly session: Revision;
      readonly message: ProtocolMessage;
      readonly at: number;
    }
  /** Entries up to here are on this node's disk. */
  | { readonly type: 'durable'; readonly upTo: Sequence; readonly at: number }
  /** Entries after `last` were taken back before they reached the disk (a block's bytes could not be had). */
  | { readonly type: 'withdrawn'; readonly last: Sequence; readonly at: number }
  /** The group's mark is on the disk. */
  | { readonly type: 'marked'; readonly at: number }
  /** Own entries after the commit point, for the takeover of `ballot`. */
  | { readonly type: 'loaded'; readonly ballot: Ballot; readonly entries: readonly LogEntry[]; readonly at: number }
  /** Entries asked of another member for the takeover of `ballot`; none: it did not answer. */
  | { readonly type: 'fetched'; readonly ballot: Ballot; readonly entries: readonly LogEntry[]; readonly at: number }
  | { readonly type: 'proposal'; readonly proposal: Proposal; readonly at: number }
  | {
      readonly type: 'transaction';
      readonly ballot: Ballot;
      readonly id: number;
      readonly outcome: 'done' | 'failed' | 'unknown';
      readonly at: number;
    }
  /** J2: from now on `node` gets every append. Refused (effect `learner-lost`) if there is one already or nothing is served. */
  | { readonly type: 'learner-start'; readonly node: NodeId; readonly session: Revision; readonly at: number }
  /** J4: all pages are applied and verified: as soon as it has the commit point, commits wait for it and it is proposed. */
  | { readonly type: 'learner-ready'; readonly node: NodeId; readonly at: number }
  | { readonly type: 'learner-failed'; readonly node: NodeId; readonly at: number }
  /** J5 without a learner: members that hold the group become its goal (a new order, one too many). */
  | { readonly type: 'arrange'; readonly at: number }
  | { readonly type: 'tick'; readonly at: number };

/** Events of changes, not of the daily writes; handled apart. */
export type RareEvent = Extract<
  GroupEvent,
  { type: 'loaded' | 'fetched' | 'transaction' | 'learner-start' | 'learner-ready' | 'learner-failed' | 'arrange' }
>;

const RARE_EVENTS: ReadonlySet<GroupEvent['type']> = new Set<RareEvent['type']>([
  'loaded',
  'fetched',
  'transaction',
  'learner-start',
  'learner-ready',
  'learner-failed',
  'arrange',
]);

export function isRareEvent(event: GroupEvent): event is RareEvent {
  return RARE_EVENTS.has(event.type);
}

export type Effect =
  | { readonly type: 'send'; readonly to: NodeId; readonly message: ProtocolMessage }
  /** Answered by `durable`. */
  | { readonly type: 'append'; readonly entry: LogEntry }
  /** Void entries after `after` with ballots below `below`; appends that follow come after it on the disk. */
  | { readonly type: 'cut'; readonly after: Sequence; readonly below: Ballot }
  /** Committed: apply. Entries up to `upTo` are durable here. */
  | { readonly type: 'apply'; readonly upTo: Sequence }
  /** Answered by `marked`. */
  | { readonly type: 'mark'; readonly mark: GroupMark }
  /** Answered by `loaded`. */
  | { readonly type: 'load'; readonly ballot: Ballot }
  /** Answered by `fetched`: entries (after, upTo] of the log of `from`. */
  | {
      readonly type: 'fetch';
      readonly ballot: Ballot;
      readonly from: NodeId;
      readonly after: Sequence;
      readonly upTo: Sequence;
    }
  | { readonly type: 'answer'; readonly ticket: number; readonly outcome: Outcome }
  /** Answered by `transaction`, `unknown` first if need be. */
  | { readonly type: 'transact'; readonly ballot: Ballot; readonly id: number; readonly plan: MembershipProposal }
  /** Offer this again, now that what it waited for is applied. */
  | { readonly type: 'revive'; readonly proposal: Proposal }
  /** Tell the controller. */
  | { readonly type: 'complain'; readonly node: NodeId; readonly what: string }
  /** This node's log ends below a commit point: its disk is old (T6). */
  | { readonly type: 'disk-is-old'; readonly commit: Sequence }
  /** The learner was not added, surely: it goes on learning and may be offered again. */
  | { readonly type: 'learner-refused'; readonly node: NodeId }
  /** The learner is out of the stream: it must begin anew. */
  | { readonly type: 'learner-lost'; readonly node: NodeId; readonly why: string }
  /** The phase changed to or from `serve`. */
  | { readonly type: 'serving'; readonly serving: boolean }
  /** A tick is wanted at this time, if not sooner. */
  | { readonly type: 'wake'; readonly at: number };

/** Effects of changes, not of the daily writes; performed apart. */
export type RareEffect = Extract<
  Effect,
  { type: 'mark' | 'load' | 'fetch' | 'complain' | 'disk-is-old' | 'learner-refused' | 'learner-lost' }
>;

const RARE: ReadonlySet<Effect['type']> = new Set<RareEffect['type']>([
  'mark',
  'load',
  'fetch',
  'complain',
  'disk-is-old',
  'learner-refused',
  'learner-lost',
]);

export function isRare(effect: Effect): effect is RareEffect {
  return RARE.has(effect.type);
}

/** What a step may look at beside its state: all of it constant within one turn. */
export interface StepContext {
  readonly self: NodeId;
  readonly parameters: ReplicaParameters;
  /** Session of this run. */
  readonly session: () => Revision;
  /** Revision of the node's map. */
  readonly revision: () => Revision;
  /** L1, asked after a look-up. */
  readonly leaseHolds: () => boolean;
  /** How long a member may owe something (W9). */
  readonly patienceMs: (node: NodeId, at: number) => number;
  /** Committed state. */
  readonly find: (key: Uint8Array) => RecordRow | undefined;
  readonly note: (group: GroupKey, name: Uint8Array) => Uint8Array | undefined;
  /** cluster's `propose` by the node's map; undefined where the change makes no sense. */
  readonly plan: (group: GroupKey, change: MembershipChange) => MembershipProposal | undefined;
  /** The disk takes no more puts. */
  readonly full: () => boolean;
  /** The disk has lost what nobody can name: the tail of any group may be missing. */
  readonly suspect: () => boolean;
  /** Bytes that other groups of this node have in flight. */
  readonly flight: { bytes: number };
  readonly requests: RequestTable;
}
