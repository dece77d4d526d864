/** What is told of counting and verifying all copies: the JSON of `webdfs scrub --json`. */

/** A pass that counted everything. */
export interface FinishedScrub {
  readonly began: string;
  readonly ended: string;
  /** Objects counted; a copy of each, at least, was looked for at every node that should have one. */
  readonly objects: number;
  /** Every copy of everything was as it should be. */
  readonly clean: boolean;
}

export interface ScrubProblem {
  /** Of an object; else `key` is the record's key or the block's id in hex. */
  readonly bucket?: string;
  readonly key: string;
  /** `record`, or which of its blocks. */
  readonly what: string;
  readonly group: number;
  /** Good copies when it was found. */
  readonly copies: number;
  readonly wrong: readonly {
    readonly node: number;
    readonly fault: 'missing' | 'damaged' | 'stale' | 'differs' | 'surplus';
  }[];
  readonly mended: boolean;
  readonly why?: string;
}

export interface ScrubPolicyReport {
  readonly policy: number;
  readonly copies: number;
  readonly groups: number;
  readonly countedGroups: number;
  /** By number of good copies, how many objects there are with so many, as they were found: `{ "3": 120, "2": 1 }`. */
  readonly objects: Readonly<Record<string, number>>;
  /** The same of what the store keeps for itself: buckets, open uploads and their parts. */
  readonly others: Readonly<Record<string, number>>;
  /** Bytes of one copy of everything counted. */
  readonly bytes: number;
  /** Wrong copies by what was wrong with them; how many of them were put right, and how many are left. */
  readonly found: Readonly<Record<string, number>>;
  readonly mended: number;
  readonly left: number;
  readonly problems: readonly ScrubProblem[];
  /** Problems that are not named here. */
  readonly omitted: number;
}

/** How far the latest pass over all copies is, and what it found: `webdfs scrub --json`. */
export interface ScrubReport {
  /** stopped: nobody is at work, and not everything is counted. */
  readonly state: 'none' | 'running' | 'stopped' | 'complete';
  readonly pass?: { readonly began: string; readonly bytesPerSecond: number };
  /** Every group was counted in this pass, by its primary and with the members it has now, and every volume was read. */
  readonly complete: boolean;
  /** Complete, and every copy of everything was as it should be. */
  readonly clean: boolean;
  readonly policies: readonly ScrubPolicyReport[];
  /** Groups that are not counted, and why; the first of them, and how many. */
  readonly notCounted: readonly { readonly policy: number; readonly group: number; readonly why: string }[];
  readonly notCountedGroups: number;
  readonly nodes: readonly {
    readonly node: number;
    /** waiting: it has not heard of the pass yet; silent: it does not answer; stuck: what is left cannot be counted. */
    readonly state: 'working' | 'stuck' | 'done' | 'waiting' | 'silent';
    /** Why it is silent. */
    readonly why?: string;
    /** Its volumes were read from end to end in this pass. */
    readonly isRead: boolean;
    readonly groups?: number;
    readonly volumes?: { readonly read: number; readonly of: number };
    readonly bytesPerSecond?: number;
  }[];
  readonly progress: { readonly share: number; readonly bytesPerSecond: number; readonly secondsLeft: number };
  readonly lastComplete?: FinishedScrub;
}
