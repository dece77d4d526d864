/** Named limits of the object layer. S3's own where S3 has one. */

/** Bytes of an object's key. */
export const MAX_KEY_BYTES = 1_024;
/** Bytes of one PUT or one part. */
export const MAX_PUT_BYTES = 5 * 1024 ** 3;
/** Bytes of an object. */
export const MAX_OBJECT_BYTES = 5 * 1024 ** 4;
/** Least bytes of a part, but for the last. */
export const MIN_PART_BYTES = 5 * 1024 ** 2;
/** Greatest part number, and number of parts. */
export const MAX_PART_NUMBER = 10_000;
/** Rows of one page of a listing. */
export const MAX_PAGE = 1_000;
/** Bytes of a record's key: the store's limit. Only rows of uploads whose key is mostly zero bytes could exceed it. */
export const MAX_ROW_KEY_BYTES = 2_048;
/** UTF-8 bytes of an object's headers, user metadata and checksums together, as JSON. Leaves room in the store's 16 KiB. */
export const MAX_FACTS_BYTES = 12_288;
/** Blocks of one body whose streams are under way: one that is filling, and one that is being committed before it. */
export const BLOCKS_UNDER_WAY = 2;
/** The next block is asked for when so many bytes of the present one are left, so that the seam between two does not stall. */
export const PREFETCH_BYTES = 1_048_576;
/** How long a bucket's record may be used without asking again, milliseconds. */
export const BUCKET_TTL_MS = 5_000;
/** Buckets remembered. */
export const BUCKET_CACHE = 1_024;
/** A write that was under way when a bucket changed has ended by then: more than a look-up and a write are retried. */
export const WRITE_SETTLE_MS = 22_000;
/** A bucket marked as being deleted for so long has lost its deleter; anybody may take the mark away. */
export const DELETING_MS = 60_000;
/** Tries of a compare-and-swap before the caller is asked to try again. */
export const SWAP_TRIES = 20;
/** Records of one call that are read or removed side by side. */
export const SIDE_BY_SIDE = 16;
