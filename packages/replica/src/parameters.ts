/** The numbers of replication, with their bounds (protocol, section 13). All times in milliseconds. */
export interface ReplicaParameters {
  readonly leaseMs: number;
  readonly marginMs: number;
  /** A member without progress for so long is dropped from the group; below `leaseMs`. */
  readonly memberMs: number;
  /** The same of one that answers other groups, or has no session; see patience.ts. */
  readonly busyMemberMs: number;
  /** A learner that does not acknowledge the stream for so long begins anew. */
  readonly learnerMs: number;
  /** A commit point travels on its own when no append carried it for so long. */
  readonly commitIdleMs: number;
  /** What was not answered is sent again after so long: posts are lost with their link. */
  readonly resendMs: number;
  /** `last - commit` never exceeds it; beyond it a write is answered BUSY. */
  readonly windowEntries: number;
  /** Bytes of entries in flight per group, and of all groups of this node. */
  readonly windowBytes: number;
  readonly nodeWindowBytes: number;
  /** How many entries may be kept for a learner that lags, beside the window. */
  readonly learnerEntries: number;
  /** Request ids are remembered so long, and at most so many on a node. */
  readonly retryKeepMs: number;
  readonly requestTableEntries: number;
  /** Requests that wait for a group to be served: per group, per node, and for how long. */
  readonly waitingPerGroup: number;
  readonly waitingPerNode: number;
  readonly waitMs: number;
  /** Writes that wait for the entries before them of one key. */
  readonly parkedPerKey: number;
  /** Messages of a newer ballot that wait for the map. */
  readonly heldMessages: number;
  /** Bytes of one PROTOCOL post, below the transport's frame limit. */
  readonly postBytes: number;
  /** An attempt older than this is refused in a record (protocol, B2), unless its upload is open. */
  readonly attemptMs: number;
}

/**
 * A body up to so many bytes travels inside its record; larger ones are cut into blocks. Inline costs one round trip less
 * but is copied and held in memory; at 128 KiB both cost the same (0.82 and 0.79 ms of CPU for a PUT), and inline
 * has the shorter answer time.
 */
export const INLINE_BYTES = 131_072;

/** Bytes of a block: what a large body is cut into. */
export const BLOCK_BYTES = 8 * 1024 * 1024;

export const REPLICA_DEFAULTS: ReplicaParameters = {
  leaseMs: 3_000,
  marginMs: 500,
  memberMs: 2_000,
  busyMemberMs: 15_000,
  learnerMs: 10_000,
  commitIdleMs: 20,
  resendMs: 250,
  windowEntries: 256,
  windowBytes: 16 * 1024 * 1024,
  nodeWindowBytes: 64 * 1024 * 1024,
  learnerEntries: 512,
  retryKeepMs: 120_000,
  requestTableEntries: 262_144,
  waitingPerGroup: 256,
  waitingPerNode: 4_096,
  waitMs: 3_000,
  parkedPerKey: 64,
  heldMessages: 65_536,
  postBytes: 768 * 1024,
  attemptMs: 86_400_000,
};
