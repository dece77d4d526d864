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
}
