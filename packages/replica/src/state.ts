import type { Ballot, GroupKey, NodeId, Revision, Sequence } from '@webdfs/base';
import type { GroupView } from '@webdfs/cluster';
import type { LogEntry } from '@webdfs/store';
import type { Run } from './messages.ts';
import type { Proposal } from './events.ts';

/** What a node remembers of an entry that is not committed yet: its place, and the request it answers. */
export interface TailEntry {
  readonly sequence: Sequence;
  readonly ballot: Ballot;
  /** 32 hex digits; empty: none. */
  readonly requestId: string;
}

/**
 * A group on this node, as member, and as primary while it is that. A few hundred bytes: a node has thousands.
 * Changed only by the steps.
 */
export interface GroupState {
  readonly key: GroupKey;
  view: GroupView;
  /** Last entry taken, and the ballot it was given. */
  last: Sequence;
  lastBallot: Ballot;
  /** On the disk up to here; ≤ last. */
  durable: Sequence;
  /** Committed and applied here; ≤ durable. */
  commit: Sequence;
  /** Committed as far as the primary said; applied once durable. */
  commitKnown: Sequence;
  /** Entries after `commit`, in order. */
  tail: TailEntry[];
  /** Ballot whose Sync was applied. */
  syncedIn: Ballot;
  /** A mark says `member` on the disk; without it a Query is not answered yet. */
  marked: 'no' | 'asked' | 'yes';
  /** A Query that waits for the disk. */
  asked: { ballot: Ballot; round: number } | undefined;
  /** Hybrid clock of the newest entry. */
  timeMs: number;
  timeCount: number;
  primary: PrimaryState | undefined;
}

/** gather: asking for logs' ends · level: getting what this node lacks · sync: levelling the others · serve · yielded (L6). */
export type Phase = 'gather' | 'level' | 'sync' | 'serve' | 'yielded';

/** Another in-sync member, as its primary sees it. */
export interface MemberProgress {
  readonly node: NodeId;
  /** query: its tail is asked for · sync: told where to cut · synced: gets appends. */
  phase: 'query' | 'sync' | 'synced';
  session: Revision;
  tail: { commit: Sequence; last: Sequence; lastBallot: Ballot; runs: readonly Run[] } | undefined;
  /** Durable there up to here. */
  acked: Sequence;
  /** Sent up to here. */
  sent: Sequence;
  /** Where the stream was last taken back to because of a gap. */
  rewound: Sequence;
  /** When it last came further, or was first asked for what it has not given. */
  progressAt: number;
  sentAt: number;
}

export interface LearnerSlot {
  readonly node: NodeId;
  readonly session: Revision;
  /** Its log begins after this sequence. */
  readonly base: Sequence;
  acked: Sequence;
  sent: Sequence;
  rewound: Sequence;
  sentAt: number;
  progressAt: number;
  /** pending: commits wait for it (J4). */
  state: 'learning' | 'pending';
}

/** Who waits for an entry. */
export interface Waiter {
  readonly ticket: number;
}

/** An entry that is in flight, at the primary. */
export interface Flight {
  readonly entry: LogEntry;
  readonly bytes: number;
  /** Which key it touches; '' for none. */
  readonly touches: string;
  readonly replaced: { readonly sequence: Sequence; readonly summary: Uint8Array } | undefined;
  waiters: Waiter[];
}

/** What is in flight of one key, and what waits for it to settle (W4). */
export interface KeyState {
  count: number;
  /** The newest entry in flight. */
  tip: Flight | undefined;
  parked: Extract<Proposal, { type: 'write' }>[];
}

export interface PrimaryState {
  readonly ballot: Ballot;
  phase: Phase;
  /** When the ballot was learned (L7). */
  readonly learnedAt: number;
  /** Number of the last Query. */
  round: number;
  readonly members: Map<NodeId, MemberProgress>;
  /** The members' latest commit point, and where the adopted log ends; set when the gathering is done. */
  adopted: { last: Sequence; ballot: Ballot; runs: readonly Run[]; holder: NodeId; commit: Sequence } | undefined;
  /** Nodes of the fence that answered Release. */
  readonly released: Set<NodeId>;
  releaseAt: number;
  /** Entries from `flightFrom` to `last`: those after the commit point, and before it those the learner lacks. */
  flightFrom: Sequence;
  flight: Flight[];
  flightBytes: number;
  readonly keys: Map<string, KeyState>;
  /** The commit point members were last told, and when one that they do not know must be told. */
  commitTold: Sequence;
  commitDue: number;
  learner: LearnerSlot | undefined;
  transaction: { readonly id: number; readonly type: 'drop' | 'members'; readonly node: NodeId | undefined } | undefined;
  /** When a transaction may be tried (again), and a complaint be repeated. */
  retryAt: number;
  complainAt: number;
}
