/** Every bound of the doors, named once. Bytes unless the name says otherwise. */

/** Connections of one door; one more is answered `503` and closed. */
export const MAX_CONNECTIONS = 10_000;
/** Requests under way at once; one more is answered `503 SlowDown`. */
export const MAX_REQUESTS = 512;
/** Requests of one connection that wait for the one before them; one more ends the connection. */
export const MAX_PIPELINED = 4_096;
/** Header lines of one request; the parser answers 431 beyond. */
export const MAX_HEADERS = 200;
/** Request line and headers together. */
export const MAX_HEADER_BYTES = 32_768;
/** Names in a query string. */
export const MAX_QUERY_NAMES = 256;

/** A key, after decoding. */
export const MAX_KEY_BYTES = 1_024;
/** Names and values of user metadata together. */
export const MAX_USER_METADATA = 2_048;
/** One PUT, one part, one copy. */
export const MAX_PUT_BYTES = 5 * 1024 ** 3;
/** A body that is an XML document. */
export const MAX_XML_BYTES = 4 * 1024 ** 2;
/** Keys of one DeleteObjects. */
export const MAX_DELETE_KEYS = 1_000;
/** Deletions of one DeleteObjects that run side by side. */
export const DELETE_WIDTH = 16;
/** Parts of a multipart upload; also the highest part number. */
export const MAX_PARTS = 10_000;
/** Entries of one page of a listing. */
export const MAX_PAGE = 1_000;

/** Received and not yet taken bytes at which a connection is paused. */
export const BODY_QUEUE_BYTES = 512 * 1024;
/** Received pieces smaller than this are joined while they wait, up to `GATHER_BYTES`. */
export const SMALL_PIECE_BYTES = 16_384;
export const GATHER_BYTES = 65_536;
/** Pieces of an answer handed to the socket and not yet written. */
export const PIECES_IN_FLIGHT = 2;

/** A chunk of aws-chunked framing. */
export const MAX_AWS_CHUNK = 16 * 1024 ** 2;
/** A chunk's head line. */
export const MAX_CHUNK_LINE = 256;
/** All trailer lines together. */
export const MAX_TRAILER_BYTES = 8_192;
/** Signing keys kept, one for each access key, day, region and service. */
export const SIGNING_KEYS = 1_024;
/** Difference allowed between a request's date and our clock, ms. */
export const MAX_SKEW_MS = 15 * 60_000;
/** Longest life of a presigned URL, seconds. */
export const MAX_PRESIGN_SECONDS = 604_800;

/** A body, or an answer, must move `PACE_BYTES` in every `PACE_SECONDS` that we wait for the client. */
export const PACE_BYTES = 65_536;
export const PACE_SECONDS = 30;
/** A refused body up to this is read and dropped, so that the connection lives; a longer one closes it. */
export const DRAIN_BYTES = 1024 ** 2;
/** How long the rest of a refused body is dropped before the connection closes, seconds. */
export const LINGER_SECONDS = 5;
/** Slow operations send white space this often to keep their connection, ms. */
export const STAY_ALIVE_MS = 10_000;
/** `Retry-After` of a refusal that says nothing else, seconds. */
export const RETRY_AFTER_SECONDS = 1;
