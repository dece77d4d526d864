/** Named limits of one node's store. What bounds a format stands in its codec; what bounds memory stands here. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Bodies of records travel and lie inside their entry up to here; larger ones are cut into blocks. */
export const MAX_INLINE_BYTES = 256 * KIB;
export const MAX_PIECE_BYTES = MIB;
export const MAX_BLOCK_BYTES = 64 * MIB;
export const MAX_KEY_BYTES = 2_048;
export const MAX_META_BYTES = 16 * KIB;

/** One group commit: so many entries, so many bytes. Linux takes 1 024 buffers a `writev`, an entry has up to three. */
export const MAX_BATCH_ENTRIES = 340;
export const MAX_BATCH_BYTES = 8 * MIB;
/** A lane takes no more into its queue than this; further callers wait outside it, in order. */
export const MAX_QUEUE_BYTES = 64 * MIB;
export const MAX_QUEUE_ENTRIES = 4_096;
/** Writes up to here happen on this thread. */
export const MAX_SYNC_WRITE_BYTES = 256 * KIB;
/** Bodies up to here are copied beside their heads: one buffer for the system instead of three. */
export const MAX_COPIED_BODY_BYTES = 16 * KIB;

/** Bytes of blocks in memory on their way in, of all streams together. */
export const MAX_STAGING_BYTES = 64 * MIB;
/** Finished blocks that nothing names yet; beyond it the oldest is forgotten. */
export const MAX_STAGED_BLOCKS = 16_384;
/** Rows that are decided but not yet in the index; beyond it lanes wait. */
export const MAX_OVERLAY_BYTES = 64 * MIB;
/** Rows of one index batch. */
export const MAX_BATCH_ROWS = 10_000;
/** Descriptors of sealed volumes held open. */
export const MAX_OPEN_VOLUMES = 1_024;
/** Reads up to here may happen on this thread if the bytes are surely cached. */
export const MAX_SYNC_READ_BYTES = 256 * KIB;

/** A group's mark as JSON. */
export const MAX_MARK_BYTES = 4 * KIB;
/** Ranges of void entries remembered per group; the oldest are forgotten first. */
export const MAX_VOID_RANGES = 128;
/** Small files beside the volumes. */
export const MAX_FILE_BYTES = 64 * MIB;

export const MIN_VOLUME_BYTES = 16 * MIB;
export const MAX_VOLUME_BYTES = 1024 * MIB;
