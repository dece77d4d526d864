import type { Ballot, Clock, GroupKey, Log, NodeId, Random, Revision, Sequence } from '@webdfs/base';
import type { LocalMap } from '@webdfs/cluster';
import type { Store } from '@webdfs/store';
import type { Link } from '@webdfs/wire';
import type { MoveMeter } from './move-meter.ts';
import type { KnownWrite } from './request-table.ts';

/** Where a learner's log begins: the commit point of the primary at that time; ballot 0 where its entry's is not known. */
export interface LogBase {
  readonly sequence: Sequence;
  readonly ballot: Ballot;
}

/**
 * What those beside the engine (catching up, garbage, verification) ask of it. The engine owns the groups' states and the
 * order of their events; they own conversations that may take minutes.
 */
export interface ReplicaHost {
  readonly self: NodeId;
  readonly store: Store;
  readonly map: LocalMap;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** What moving groups takes of this node. */
  readonly moves: MoveMeter;
  link(node: NodeId): Link;
  /** Session of this run. */
  session(): Revision;

  // ---- as primary ----
  /** The ballot in which this node serves the group at this instant (phase serve, L3), else 0. */
  serving(group: GroupKey): Ballot;
  /** Groups that this node serves. */
  served(): Iterable<GroupKey>;
  /** Steps `learner-start`; the base of the learner's log, or undefined if it was refused. */
  startLearner(group: GroupKey, node: NodeId, session: Revision): LogBase | undefined;
  /** Steps `learner-ready`. */
  readyLearner(group: GroupKey, node: NodeId): void;
  /** Steps `learner-failed`. */
  failLearner(group: GroupKey, node: NodeId): void;
  /** Steps `arrange`. */
  arrange(group: GroupKey): void;
  /** Commits a note of a group that this node serves. @throws NOT_PRIMARY, NO_QUORUM and the like */
  proposeNote(group: GroupKey, name: Uint8Array, value: Uint8Array): Promise<void>;
  /** Commits the end of a block of a group that this node serves. */
  proposeBlockGone(group: GroupKey, id: Uint8Array): Promise<void>;
  /** Requests remembered of a group, newest first: a learner gets them with the rest. */
  requestsOf(group: GroupKey): Iterable<KnownWrite & { readonly requestId: Uint8Array }>;

  // ---- as learner ----
  /**
   * From now on this node takes the appends of `ballot` that follow `base`: waits for what is being written of the group,
   * marks it `learner` and rebases its log (unless `asIs`: the log stands at `base` already and holds nothing else), then
   * sets the group's state. Repeats for the same ballot and base change nothing.
   *
   * @throws STALE_BALLOT if the map has another ballot now, or this node is in sync by it
   */
  follow(group: GroupKey, ballot: Ballot, options: { base: LogBase; asIs: boolean }): Promise<void>;
  /** Remembers requests that others' entries answered. */
  rememberRequests(group: GroupKey, requests: readonly (KnownWrite & { readonly requestId: Uint8Array })[]): void;
}
