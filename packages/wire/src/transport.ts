import type { NodeId } from '@webdfs/base';

/** What travels: a head packed by hand, and bytes attached to it by reference. */
export interface Message {
  readonly head: Uint8Array;
  /** Not covered by the frame's check: the head carries their checksums, and the receiver of the verb verifies them. */
  readonly attached: readonly Uint8Array[];
}

/** A piece of a body. Its bytes are lent: valid until the last `release`; each `hold` needs one more. */
export interface Piece {
  readonly bytes: Uint8Array;
  hold(): void;
  release(): void;
}

export interface CallOptions {
  /** By the asker's clock, from now; at most `MAX_DEADLINE_MS`. The receiver learns what is left of it. */
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
  /** The caller's number for this piece of work, below 2^53; travels with the call, for logs. */
  readonly trace?: number;
}

/** The sending end of a body. */
export interface Outgoing {
  /**
   * Takes one piece (its `release` is called once the bytes have left). Returns false when the window is used up:
   * await `ready` before the next.
   */
  write(piece: Piece): boolean;
  ready(): Promise<void>;
  /** No more pieces. */
  end(): void;
  /** Gives up: the other end fails with CANCELLED. Harmless after the end. */
  cancel(reason: string): void;
}

/** The receiving end of a body. */
export interface Incoming {
  /** The next piece, or undefined if none is here now (see `ready`) or none will come (see `ended`). The caller releases it. */
  take(): Piece | undefined;
  /** Resolves when `take` would give a piece or the body has ended. @throws PEER_LOST, CANCELLED, TIMEOUT */
  ready(): Promise<void>;
  /** All pieces were taken and the sender said it was the last. */
  readonly ended: boolean;
  cancel(reason: string): void;
}

/** One peer as seen from here; calls fail with PEER_LOST while it cannot be reached. A node's link to itself calls straight through. */
export interface Link {
  readonly peer: NodeId;
  /** A request and its answer. @throws the peer's error, or PEER_LOST (unknown, not "not done"), TIMEOUT, BUSY, CANCELLED */
  call(verb: number, message: Message, options: CallOptions): Promise<Message>;
  /** One way; may be lost with the link, never reordered with other posts to the same peer. False if it surely was not sent. */
  post(verb: number, message: Message): boolean;
  /** Sends a body; `answer` resolves to the receiver's reply once it has taken all. */
  send(verb: number, message: Message, options: CallOptions): { body: Outgoing; answer: Promise<Message> };
  /** Asks for a body; `answer` resolves to the sender's closing reply after the last piece. */
  fetch(verb: number, message: Message, options: CallOptions): { body: Incoming; answer: Promise<Message> };
}

export interface CallContext {
  readonly from: NodeId;
  /** Aborted when the asker gave up or its time is over. */
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
  /** The asker's number for this piece of work; 0 or absent: none. */
  readonly trace?: number;
}

/** What a node does with what arrives. Errors thrown travel back with code, message, details and retryAfterMs. */
export interface Handlers {
  call(verb: number, message: Message, context: CallContext): Promise<Message> | Message;
  post(verb: number, message: Message, from: NodeId): void;
  /** A body comes in; the result is the answer. */
  receive(verb: number, message: Message, body: Incoming, context: CallContext): Promise<Message>;
  /** A body goes out; the result is the closing answer. */
  serve(verb: number, message: Message, body: Outgoing, context: CallContext): Promise<Message>;
}

/** All links of one node. */
export interface Transport extends AsyncDisposable {
  readonly self: NodeId;
  /** Where it listens, `host:port`, after `open`. */
  readonly address: string;
  /** The addresses of the other nodes, from the map; links to those left out are closed. */
  setPeers(addresses: ReadonlyMap<NodeId, string>): void;
  /** The link to a node, kept up as long as its address is known. */
  link(node: NodeId): Link;
  /** Whether frames from this node arrived within the silence limit. */
  alive(node: NodeId): boolean;
  onChange(listener: (node: NodeId, alive: boolean) => void): void;
}

export const NO_ATTACHMENT: readonly Uint8Array[] = [];
