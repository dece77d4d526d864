/**
 * Every failure that WebDFS tells of, in one table: the code is API and outlives the message,
 * the remedy says who must act.
 */

/** Who must act on an error: the caller changes the request, anybody tries again, the operator looks at the machine. */
export type Remedy = 'caller' | 'retry' | 'operator';

/** Code → remedy. Gateways map each code to their protocol in one table, proven complete by a test. */
export const REMEDY = {
  // the request is at fault
  INVALID: 'caller',
  NOT_FOUND: 'caller',
  ALREADY_EXISTS: 'caller',
  NOT_EMPTY: 'caller',
  PRECONDITION_FAILED: 'caller',
  NOT_MODIFIED: 'caller',
  RANGE_NOT_SATISFIABLE: 'caller',
  TOO_LARGE: 'caller',
  CHECKSUM_MISMATCH: 'caller',
  INCOMPLETE_BODY: 'caller',
  ACCESS_DENIED: 'caller',
  UNSUPPORTED: 'caller',
  CANCELLED: 'caller',
  FENCED: 'caller',
  // the same call may succeed later, or elsewhere
  NOT_PRIMARY: 'retry',
  STALE_BALLOT: 'retry',
  NOT_SYNCED: 'retry',
  NO_QUORUM: 'retry',
  TOO_LATE: 'retry',
  CONFLICT: 'retry',
  COMPACTED: 'retry',
  BUSY: 'retry',
  PEER_LOST: 'retry',
  TIMEOUT: 'retry',
  UNAVAILABLE: 'retry',
  // someone must look at the machine
  DISK_FULL: 'operator',
  DISK_FAILED: 'operator',
  CORRUPT: 'operator',
  LOCKED: 'operator',
  LOST: 'operator',
  OLD_STORE: 'operator',
  WIRE_CORRUPT: 'operator',
  WRONG_PEER: 'operator',
  BAD_CONFIG: 'operator',
  NEWER_FORMAT: 'operator',
} as const satisfies Record<string, Remedy>;

export type ErrorCode = keyof typeof REMEDY;

/** All codes, in the order of the table; a code's number on the wire is its position here, so new ones go last. */
export const ERROR_CODES = Object.keys(REMEDY) as readonly ErrorCode[];

export interface WebdfsErrorOptions {
  cause?: unknown;
  /** Facts for whoever handles the code, such as `{ revision: 41 }`. Never a secret. */
  details?: Readonly<Record<string, string | number | boolean>>;
  /** How long to wait before trying again, milliseconds. */
  retryAfterMs?: number;
}

/** The one error class. `message` holds the numbers that its reader will ask for. */
export class WebdfsError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, string | number | boolean>>;
  readonly retryAfterMs: number;

  constructor(code: ErrorCode, message: string, options: WebdfsErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'WebdfsError';
    this.code = code;
    this.details = options.details ?? {};
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }

  get remedy(): Remedy {
    return REMEDY[this.code];
  }
}

/** The code of an error of ours, else undefined. */
export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof WebdfsError ? error.code : undefined;
}

/** A text for logs: message, and the messages of the causes. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${messageOf(error.cause)}`;
}
