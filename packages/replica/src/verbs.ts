/**
 * Numbers of the verbs that nodes call each other with. 1–6 come from gateways, 7–12 are replication's own, 13–16 the
 * learners', 18–22 the scrub's, 23 the learners' again; other rooms number theirs from 32.
 */
export const VERB = {
  /** call: `WriteRequest` → `WriteAnswer` */
  WRITE: 1,
  /** call: `ReadRequest` → `ReadAnswer` or nothing */
  READ: 2,
  /** call: `ListRequest` → `NodeListAnswer` */
  LIST: 3,
  /** receive: a block's bytes at the primary of its group → `PutBlockAnswer` */
  PUT_BLOCK: 4,
  /** serve: bytes of a committed block */
  READ_BLOCK: 5,
  /** receive: a block's bytes from the member before, passed on to the rest of the chain */
  STAGE: 6,
  /** post: a batch of protocol messages (messages.ts) */
  PROTOCOL: 7,
  /** call: entries of a group's log, or of keys (entry-fetch.ts) */
  FETCH_ENTRIES: 8,
  /** serve: bytes of a block that is staged, or committed, here */
  FETCH_STAGED: 9,
  /** call: what this node has of a key or block, verified now */
  VERIFY: 10,
  /** call: `NodeStatus` as JSON */
  STATUS: 11,
  /** call, to the primary of a key's group: are these attempts named? (named.ts) */
  NAMED: 12,
  /** call, primary → learner: begin to learn these groups (learner-codec.ts) */
  LEARN: 13,
  /** call, learner → primary: a page of what a group holds: its records, blocks, notes or requests */
  PAGE: 14,
  /** call, learner → primary: these groups are learned, those given up */
  LEARNED: 15,
  /** call: the newest entries of keys and blocks, from any member */
  FETCH_KEYS: 16,
  /** call, to the primary of blocks' group: look at these blocks, they may be garbage (garbage.ts) */
  EXAMINE: 17,
  /** call: what this node has of some things, read and verified now, at a pace (scrub/looking.ts) */
  LOOK: 18,
  /** call: a page of what this node has applied of a group, whoever serves it */
  COPIES: 19,
  /** call: replace a copy by the version that others have (scrub/mending.ts) */
  MEND: 20,
  /** call, from the primary: give up a copy of what was deleted */
  BURY: 21,
  /** call: begin or go on with a pass that counts all copies; how far this node is (scrub/scrubber.ts) */
  SCRUB: 22,
  /** serve: bytes of a committed block for a node that learns, at the pace of moving (move-block.ts) */
  MOVE_BLOCK: 23,
  /** call: bytes of each group that this node is primary of (group-sizes.ts) */
  GROUP_SIZES: 24,
} as const;

/** The first number that rooms above may use. */
export const FIRST_FREE_VERB = 32;
