import type { Ballot, NodeId, PolicyId, Revision } from '@webdfs/base';
import type { Topology } from '@webdfs/placement';

/** How an object is kept: whole copies on `copies` members; nothing is acknowledged by fewer than `minCopies`. */
export interface Policy {
  readonly id: PolicyId;
  /** Such as `replicas=3`. */
  readonly name: string;
  readonly copies: number;
  readonly minCopies: number;
  /** Revision at which `minCopies` last changed; 0: never. Dates eligibility (protocol, section 1.3 c). */
  readonly minCopiesSince: Revision;
  /** What its numbers become with the target; `before`: the `minCopies` to go back to if it is given up. */
  readonly next?: { readonly copies: number; readonly minCopies: number; readonly before: number };
}

/** What moving groups may take of each node. What is left out is not limited. */
export interface MoveLimits {
  /** Bytes per second that a node takes in for groups that move to it, and as many that it sends. */
  readonly bytesPerSecond?: number;
  /** Of what it was seen to move at its fastest, while it has clients to serve; above 0, at most 1. */
  readonly share?: number;
}

/** The key `map`. */
export interface ClusterMap {
  /** 32 hex digits. */
  readonly cluster: string;
  readonly name: string;
  readonly era: number;
  /** Number of groups of every policy is 2^groupBits. */
  readonly groupBits: number;
  readonly policies: readonly Policy[];
  readonly settled: Topology;
  readonly target?: Topology;
  /** Nodes written off. */
  readonly out: readonly NodeId[];
  /** Groups that have all their copies stay where they are. */
  readonly paused?: boolean;
  readonly moveLimits?: MoveLimits;
  /** A node marked for so many milliseconds is written off; 0: none ever is. Missing: as the parameters say. */
  readonly outAfterMs?: number;
  /** Name of the secret that its nodes know, where joining nodes are to be told that theirs is another. */
  readonly secret?: string;
  /** The store that the map was in before, when it was taken out. */
  readonly importedFrom?: { readonly era: number; readonly revision: Revision };
}

/** The key `node/<n>`. */
export interface NodeInfo {
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Raised at every start and every `lifeMs`; also kept on the node's disk: an older one there proves an old disk. */
  readonly life: number;
}

/** The key `disk/<n>`. Its revision is the disk revision. */
export interface DiskInfo {
  /** The id of the data folder; empty: the cluster was made with this node, and no data folder has claimed its place yet. */
  readonly id: string;
  /**
   * The first data folder of a node that was there when the cluster was made. It loses nothing by being newer than the
   * configurations that list it: without a claim there was no session, so nothing was acknowledged with this node.
   */
  readonly founding: boolean;
}

/** A process, told apart from a later one with the same id. */
export interface ProcessMark {
  readonly pid: number;
  /** When it started, in the system's own unit and words; empty if unknown. */
  readonly start: string;
  /** The run of the system it belongs to; empty if unknown. */
  readonly boot: string;
}

/** The key `live/<n>`, bound to the node's lease. Its revision is the session. */
export interface LiveInfo {
  readonly pid: number;
  readonly startedMs: number;
  /** Where clients of the gateway reach this node, `host:port`, for `status`. */
  readonly door?: string;
  /** By which another process of the same machine sees whether this one still runs. */
  readonly process?: ProcessMark;
}

/** The key `down/<n>`. Its revision is the mark. */
export interface DownInfo {
  readonly reason: string;
  /** The session it ends; 0: none. */
  readonly session: Revision;
  /**
   * Earlier marks of this node that were not removed in between, ascending. A group that has not taken the node back since
   * one of them was left then, not at the newest mark.
   */
  readonly earlier?: readonly Revision[];
  /** Earlier marks up to here are no longer listed: in configurations older than this the node is not eligible. */
  readonly forgets?: Revision;
}

/** The key `controller`, bound to its lease. Its create revision is what its transactions compare. */
export interface ControllerInfo {
  readonly node: NodeId;
  readonly session: Revision;
}

/** A node, with the session in which it may still serve as primary. */
export interface FencedNode {
  readonly node: NodeId;
  readonly session: Revision;
}

/** The key `group/<policy>/<g>`. */
export interface Override {
  readonly members: readonly NodeId[];
  readonly eligible: readonly NodeId[];
  /** Nodes, with their sessions, that may still serve as primary. */
  readonly from: readonly FencedNode[];
}

export type GroupHealth = 'whole' | 'degraded' | 'reads-only' | 'waiting' | 'lost';

/** What everybody computes from the map about one group: protocol, section 1. */
export interface GroupView {
  /** 0 without a primary. Equal ballots mean equal members, primary and session. */
  readonly ballot: Ballot;
  readonly inSync: readonly NodeId[];
  /** As configured, those that left included. */
  readonly members: readonly NodeId[];
  readonly primary: NodeId | undefined;
  /** The primary's session. */
  readonly session: Revision;
  /** Revision of the override, else of the slice. */
  readonly configRevision: Revision;
  readonly overridden: boolean;
  readonly eligible: readonly NodeId[];
  readonly fence: readonly FencedNode[];
  /** Where the group should be: `goal(g)`. */
  readonly goal: readonly NodeId[];
  /** That the group must not fall below: while the policy's number changes, the smaller one. */
  readonly copies: number;
  readonly minCopies: number;
  readonly health: GroupHealth;
}
