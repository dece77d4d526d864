/** The seam to what carries bytes: TCP, or memory. A pipe is one connection; it keeps order and loses nothing but its end. */

export interface PipeUser {
  /**
   * Bytes came in: the user's own, or a part of what `space` gave. False pauses reading until `resume` (little that is
   * already under way may still come).
   */
  received(bytes: Uint8Array): boolean;
  /** Where the next bytes go; without it each read gets a fresh buffer. Dialled pipes only. */
  readonly space?: () => Uint8Array;
  /** The pipe has ended, for whatever reason; called once, last. */
  ended(cause: string): void;
}

export interface Pipe {
  /** Bytes written that have not left. */
  readonly queued: number;
  /** Writes buffers in order, by reference; `left` is called exactly once, when they have left or never will. */
  write(buffers: readonly Uint8Array[], left: () => void): void;
  resume(): void;
  /** Closes after what was written. */
  end(): void;
  /** Closes now. */
  destroy(): void;
  /** 32 bytes that only the two ends of this connection share, or empty: binds the greeting to it. */
  exporter(): Uint8Array;
}

/** Where pipes come from. */
export interface Network {
  /** Where others reach this node, `host:port`. */
  readonly address: string;
  /** Calls `accept` for each pipe that another node dialled; from now on. */
  serve(accept: (pipe: Pipe) => PipeUser): void;
  dial(address: string, user: PipeUser): Pipe;
  /** Stops accepting. Pipes live on. */
  close(): Promise<void>;
}
