import { WebdfsError } from '@webdfs/base';

/** Every time and size that the protocol leaves open. `Ms` are milliseconds. */
export const DEFAULT_PARAMETERS = {
  /** How long a session outlives its last renewal. */
  leaseMs: 3_000,
  renewMs: 500,
  /** What a node takes off its lease, for clocks that run apart and for timers that come late. */
  marginMs: 500,
  /** A new controller judges nobody for so long, nor does one whose store was away. */
  graceMs: 5_000,
  /**
   * A node whose session has ended is marked so much later. 0: at once. For map stores that may end leases early, so that
   * its own lease has surely run out too.
   */
  fenceMs: 0,
  /** A member silent for so long is dropped from the groups that wait for it. */
  memberMs: 2_000,
  /** A gateway tries a write again for so long. */
  retryForMs: 10_000,
  /** So long a group remembers the ids of requests. */
  retryKeepMs: 120_000,
  /** A commit point with no entry to ride on is sent after so long. */
  commitIdleMs: 20,
  /** Entries of a group that may be appended and not committed. */
  windowEntries: 256,
  /** Bodies up to here travel inside their record. */
  inlineBytes: 64 * 1024,
  blockBytes: 8 * 1024 * 1024,
  /** How often a node raises the counter that it shares with the map. */
  lifeMs: 60_000,
  /** A node marked for so long is written off, and its groups move. */
  outAfterMs: 600_000,
  /** A node that left a group keeps its copy for so long. */
  dropMs: 600_000,
  /** Replaced blocks stay readable for so long. */
  releaseMs: 3_600_000,
  pinMs: 300_000,
  /** A block that nothing names is asked after at this age. */
  orphanMs: 86_400_000,
  fenceKeepMs: 604_800_000,
  tombstoneKeepMs: 3_600_000,
  /** How long a page of a listing waits for groups that have no primary. */
  listMs: 2_000,
  /** One slice is swept at a time, so far apart. */
  sweepEveryMs: 100,
  /** How long a complaint of one node about another counts. */
  complaintMs: 4_000,
  /** Back-off of a node that was accused before it is taken back untested: it doubles up to the second figure. */
  backoffMs: 2_000,
  maxBackoffMs: 300_000,
} as const;

export type ClusterParameters = { readonly [Name in keyof typeof DEFAULT_PARAMETERS]: number };

/** A condition between parameters, in words and as a check. */
type Bound = readonly [text: string, holds: (p: ClusterParameters) => boolean];

const TIMER_DELAY_MS = 50;

const BOUNDS: readonly Bound[] = [
  ['marginMs is at least 1 % of leaseMs and a timer’s delay', (p) => p.marginMs >= p.leaseMs / 100 + TIMER_DELAY_MS],
  ['a lease outlives its margin and two renewals', (p) => p.leaseMs > p.marginMs + 2 * p.renewMs],
  ['graceMs is at least leaseMs and two renewals', (p) => p.graceMs >= p.leaseMs + 2 * p.renewMs],
  ['memberMs is less than leaseMs', (p) => p.memberMs < p.leaseMs],
  ['retryKeepMs is at least four times retryForMs', (p) => p.retryKeepMs >= 4 * p.retryForMs],
  ['complaintMs outlives memberMs', (p) => p.complaintMs > p.memberMs],
  ['windowEntries is 1 to 65 536', (p) => p.windowEntries >= 1 && p.windowEntries <= 65_536],
  ['inlineBytes is at most blockBytes', (p) => p.inlineBytes <= p.blockBytes],
  ['attempts are refused before their fence is forgotten', (p) => p.fenceKeepMs >= 7 * p.orphanMs],
  ['maxBackoffMs is at least backoffMs', (p) => p.maxBackoffMs >= p.backoffMs],
];

/**
 * The defaults with some of them replaced.
 *
 * @throws BAD_CONFIG naming the first bound that does not hold
 */
export function parametersWith(replaced: Partial<ClusterParameters> = {}): ClusterParameters {
  const parameters = { ...DEFAULT_PARAMETERS, ...replaced };
  for (const [name, value] of Object.entries(parameters)) {
    const least = name === 'fenceMs' ? 0 : Number.MIN_VALUE;
    if (!Number.isFinite(value) || value < least) throw new WebdfsError('BAD_CONFIG', `${name} is ${value}`);
  }
  for (const [text, holds] of BOUNDS) {
    if (!holds(parameters)) throw new WebdfsError('BAD_CONFIG', `the cluster's parameters: ${text}`);
  }
  return parameters;
}
