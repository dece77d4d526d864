import type { Ballot, GroupKey, Revision, Sequence } from '@webdfs/base';
import type { LogEntry } from '@webdfs/store';

/**
 * What primaries and members say to each other (protocol, section 10). All are one-way posts that may be lost, repeated or
 * overtaken; `message-codec.ts` packs those of one turn for one node into one post. The sender's node and session belong to
 * the batch.
 */
interface Addressed extends GroupKey {
  readonly ballot: Ballot;
}

/** Entries up to `last` (after those of the run before) were given this ballot. */
export interface Run {
  readonly ballot: Ballot;
  readonly last: Sequence;
}

/** Primary → in-sync member: where does your log end? (T1) `round` comes back, so that an old answer is told from a new one. */
export interface Query extends Addressed {
  readonly type: 'query';
  readonly round: number;
}

/** All of it is durable. `runs` tell the ballots of the entries after `commit`. */
export interface Tail extends Addressed {
  readonly type: 'tail';
  readonly round: number;
  readonly commit: Sequence;
  readonly last: Sequence;
  readonly lastBallot: Ballot;
  readonly runs: readonly Run[];
}

/**
 * Primary → member: keep your log up to `after`, cut the rest; from now on you are synced in this ballot, and the entries
 * that follow come as appends (T3). Repeats change nothing.
 */
export interface Sync extends Addressed {
  readonly type: 'sync';
  /** The session it is meant for. */
  readonly receiver: Revision;
  readonly after: Sequence;
  readonly commit: Sequence;
}

export interface Append extends Addressed {
  readonly type: 'append';
  readonly commit: Sequence;
  readonly entry: LogEntry;
}

/** Member or learner → primary: durable up to `last`. `expects`: an append was ahead of the log, this is the one it takes next. */
export interface Ack extends Addressed {
  readonly type: 'ack';
  readonly last: Sequence;
  readonly expects?: Sequence;
}

/** Member → primary: I have not applied a Sync of this ballot (I was restarted, or it was lost). */
export interface NotSynced extends Addressed {
  readonly type: 'not-synced';
}

/** Primary → members: the commit point, when no append carries it. */
export interface Commit extends Addressed {
  readonly type: 'commit';
  readonly commit: Sequence;
}

/** New primary → node that may still believe it is primary (L7). */
export interface Release extends Addressed {
  readonly type: 'release';
}

/** It serves nothing of an older ballot any more. */
export interface Released extends Addressed {
  readonly type: 'released';
}

/** STALE_BALLOT: the sender's map is behind; `revision` is the refuser's. */
export interface Stale extends Addressed {
  readonly type: 'stale';
  readonly revision: Revision;
}

/** Primary → member: your log ends below a commit point: it lost durable data and must register as an old disk (T2, T6). */
export interface Lost extends Addressed {
  readonly type: 'lost';
  readonly commit: Sequence;
}

/** Member → primary: my disk takes no puts; what you sent was not taken. */
export interface Full extends Addressed {
  readonly type: 'full';
}

export type ProtocolMessage =
  | Query
  | Tail
  | Sync
  | Append
  | Ack
  | NotSynced
  | Commit
  | Release
  | Released
  | Stale
  | Lost
  | Full;
