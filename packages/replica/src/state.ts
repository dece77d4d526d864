import type { Ballot, GroupKey, NodeId, Revision, Sequence } from '@webdfs/base';
import type { GroupView } from '@webdfs/cluster';
import type { LogEntry } from '@webdfs/store';
import type { Run } from './messages.ts';
import type { Proposal } from './events.ts';

/** What a node remembers of an entry that is not committed yet: its place, and the request it answers. */
export interface TailEntry {
  readonly sequence: Sequence;
  readonly ballot: Ballot;
  /** Its request's position in the table of requests; −1: it has none. */
  readonly request: number;
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
  /** A learner's log begins after this sequence; 0 for a member. */
  base: Sequence;
  /** A mark says `member` on the disk; without it a Query is not answered yet. */
  marked: 'no' | 'asked' | 'yes';
  /** A Query that waits for the disk. */
  asked: number | undefined;
  /** A cut is on its way to the disk: nothing is acknowledged before it is there. */
  cutting: boolean;
  /** When the next tick is due; Infinity: none is wanted. */
  wakeAt: number;
  /** Ballot of the entry at the commit point; 0: not known. */
  commitBallot: Ballot;
  /** Hybrid clock of the newest entry. */
  timeMs: number;
  timeCount: number;
  primary: PrimaryState | undefined;
}

/** gather: asking for logs' ends · level: getting what this node lacks · sync: levelling the others · serve · yielded (L6). */
export type Phase = 'gather' | 'level' | 'sync' | 'serve' | 'yielded';

/** Where the stream of appends to a node stands. */
export interface Receiver {
  readonly node: NodeId;
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

/** Another in-sync member, as its primary sees it. */
export interface MemberProgress extends Receiver {
  /** query: its tail is asked for · sync: told where to cut · synced: gets appends. */
  phase: 'query' | 'sync' | 'synced';
  session: Revision;
  tail: { commit: Sequence; last: Sequence; lastBallot: Ballot; runs: readonly Run[] } | undefined;
  /** It said that its disk is full; believed until then. */
  fullUntil: number;
  /** Number of the last Query to it. */
  round: number;
}

export interface LearnerSlot extends Receiver {
  readonly session: Revision;
  /** Its log begins after this sequence. */
  readonly base: Sequence;
  /** ready: everything is there but the newest entries · pending: commits wait for it (J4). */
  state: 'learning' | 'ready' | 'pending';
  /** It was given up while pending: out as soon as the transaction surely failed. */
  failed: boolean;
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
  /** Numbers Queries and transactions. */
  round: number;
  readonly members: Map<NodeId, MemberProgress>;
  /** Where the log ends that all members are to have, and who has it; set when the gathering is done (T2). */
  adopted:
    | {
        readonly holder: NodeId;
        readonly last: Sequence;
        readonly runs: readonly Run[];
        /** The members' latest commit point. */
        readonly commit: Sequence;
        /** This node's log is the same up to here. */
        readonly common: Sequence;
      }
    | undefined;
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
  /** The change of configuration on its way; its fate is not known yet. */
  transaction: { readonly id: number; readonly type: 'drop' | 'join' } | undefined;
  /** When a change may be tried (again), and a complaint be repeated. */
  changeAt: number;
  complainAt: number;
}
