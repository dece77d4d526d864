import type { FinishedScrub } from './scrub-reports.ts';
import type { Topology } from '@webdfs/placement';

/** What a node tells of the cluster and of one object: the JSON of `webdfs status --json` and `webdfs where --json`. */

export interface NodeReport {
  readonly id: number;
  readonly state: 'up' | 'down';
  /** Why it is down, as the controller wrote it. */
  readonly reason?: string;
  readonly pid?: number;
  readonly address?: string;
  readonly data?: string;
  readonly objects?: number;
  readonly blocks?: number;
  /** Bytes of live entries, and of the volumes that hold them. */
  readonly bytes?: number;
  readonly volumeBytes?: number;
  readonly freeBytes?: number;
  readonly totalBytes?: number;
  /** Too full for puts. */
  readonly full?: boolean;
  /** Damaged places not yet repaired. */
  readonly damaged?: number;
  /** What moved to it and from it since it started, so that groups can move or copies be made anew. */
  readonly moved?: {
    /** All that passed, what is compared included. */
    readonly inBytes: number;
    readonly outBytes: number;
    /** Of objects: what was kept, and what came in vain. */
    readonly learnedBytes: number;
    readonly wastedBytes: number;
    /** Bytes per second that it may move each way now; 0: any. */
    readonly limit: number;
    /** Seconds in which its clients had it move less. */
    readonly slowdowns: number;
  };
  /** Catching up, if it is. */
  readonly catchingUp?: {
    readonly groupsLeft: number;
    readonly bytesLeft: number;
    readonly bytesPerSecond: number;
    readonly secondsLeft: number;
  };
}

export interface StatusReport {
  readonly cluster: string;
  readonly name: string;
  /** Revision of the cluster map. */
  readonly epoch: number;
  readonly placement: string;
  readonly copies: number;
  readonly minCopies: number;
  readonly nodes: readonly NodeReport[];
  readonly groups: {
    readonly total: number;
    /** All copies in sync. */
    readonly whole: number;
    /** Fewer, but enough to write. */
    readonly degraded: number;
    /** Too few to write. */
    readonly readsOnly: number;
    /** No copy in sync is up. */
    readonly waiting: number;
    readonly lost: number;
    /** Nobody serves them at this moment: no primary, or one that is taking over. */
    readonly withoutPrimary: number;
  };
  /** Counting and verifying all copies: whether a pass is under way, and the last that counted everything. */
  readonly scrub: { readonly running: boolean; readonly lastComplete?: FinishedScrub };
}

export interface CopyReport {
  readonly node: number;
  readonly role: 'primary' | 'member' | 'learner';
  readonly present: boolean;
  /** All of its bytes were read and verified for this report. */
  readonly checksum: 'good' | 'bad' | 'unknown';
  readonly version?: number;
  /** Why there is nothing more to say. */
  readonly problem?: string;
}

export interface PlaceReport {
  /** `record`, or `block 3`. */
  readonly what: string;
  readonly group: number;
  readonly members: readonly number[];
  readonly primary: number | undefined;
  readonly copies: readonly CopyReport[];
}

export interface WhereReport {
  readonly bucket: string;
  readonly key: string;
  readonly size: number;
  readonly etag: string;
  readonly epoch: number;
  /** The path of the computation, a sentence each. */
  readonly steps: readonly string[];
  readonly places: readonly PlaceReport[];
  /** Blocks of the object, and the number of the first that was looked at: of a large object only some are, at a time. */
  readonly blocks: number;
  readonly firstBlock: number;
  /** Every copy of everything is present and good. */
  readonly sound: boolean;
}

/** Where the cluster map says that groups lie, and where they are going. */
export interface TopologyReport {
  readonly name: string;
  /** Revision of the cluster map. */
  readonly epoch: number;
  readonly groupBits: number;
  readonly copies: number;
  readonly settled: Topology;
  /** While a change is under way: what it leads to. */
  readonly target?: Topology;
  /** Nodes written off. */
  readonly out: readonly number[];
  /** Revision at which what stands here was last changed: a change names it, so that none is made blindly. */
  readonly revision: number;
  /** Groups that have all their copies stay where they are. */
  readonly paused: boolean;
  /** What moving groups may take of each node: bytes per second each way, and the share of what it can, beside clients. */
  readonly moveLimits?: { readonly bytesPerSecond?: number; readonly share?: number };
  /** A node that is away for so many milliseconds is written off: its copies are made anew elsewhere. 0: none ever is. */
  readonly outAfterMs: number;
  /** Of all policies. */
  readonly groups: number;
  /** Groups whose members are those that they should have. */
  readonly atGoal: number;
  /** All nodes are on one machine, whose supervisor starts new ones. */
  readonly isSupervised: boolean;
  /** Data folders that ask for a place, in the order in which they came. */
  readonly waiting: readonly {
    readonly folder: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly weight: number;
  }[];
  /** Numbers of copies that it leads to, where they change; what nobody may lack then. */
  readonly minCopies: number;
  readonly next?: { readonly copies: number; readonly minCopies: number };
  /** Bytes of one copy of each group, if they were asked for (`sizes=yes`): what the primaries that answered say. */
  readonly groupBytes?: readonly number[];
  /** What moves, unless every group is where it should be. */
  readonly moving?: RescaleProgress;
}

/** Groups on their way. Bytes are those of objects; what is known of their sizes is an average. */
export interface RescaleProgress {
  /** Groups whose members are not yet those that they should have. */
  readonly groupsLeft: number;
  readonly bytesLeft: number;
  /** Taken in by all nodes together, lately. */
  readonly bytesPerSecond: number;
  /** Of the node that needs longest, and what it is that takes it so long. Missing while nothing is measured, and while paused. */
  readonly secondsLeft?: number;
  readonly pace?: { readonly node: number; readonly resource: string };
  /** Nodes that have something to do. */
  readonly nodes: readonly {
    readonly node: number;
    readonly receiveLeft: number;
    readonly sendLeft: number;
    readonly receivePerSecond: number;
    readonly sendPerSecond: number;
    readonly secondsLeft?: number;
  }[];
  /** The change that it belongs to; without one, copies that were lost are made anew. */
  readonly change?: RescaleSummary;
}

/** One change of the shape of a cluster: JSON of `GET /-/rescales`, and part of `GET /-/topology`. */
export interface RescaleSummary {
  readonly number: number;
  /** What began it. */
  readonly command: string;
  /** ISO 8601, UTC. */
  readonly began: string;
  readonly ended?: string;
  readonly outcome: 'settled' | 'aborted' | 'replaced' | 'under way';
  /** Without those in which it was paused. */
  readonly seconds: number;
  readonly pausedSeconds: number;
  readonly planned: {
    readonly groups: number;
    /** Copies of groups to be made. */
    readonly copies: number;
    readonly bytes?: number;
    /** What any scheme must move. */
    readonly leastBytes?: number;
  };
  readonly moved: { readonly groups: number; readonly bytes: number };
  /** T_bound and T_plan by the rates that nodes were seen to move at, or their limit: missing while nothing is measured. */
  readonly bound?: { readonly seconds: number; readonly by: string };
  readonly plan?: { readonly seconds: number; readonly node: number; readonly by: string };
  /** Moved or planned by least bytes, T_plan / T_bound; of one that settled also T / T_plan and T / T_bound. */
  readonly ratios?: {
    readonly move?: number;
    readonly place?: number;
    readonly exec?: number;
    readonly total?: number;
  };
}

/** What was done to the shape of a cluster, the newest first. */
export interface RescaleHistory {
  readonly rescales: readonly RescaleSummary[];
}
