/** Every bound of this room, with its unit. Tests lower some of them; the defaults are what nodes run with. */
export interface Limits {
  /** Payload of a DATA frame, bytes. */
  readonly frameBytes: number;
  /** Payload of any other frame, bytes. */
  readonly maxFrame: number;
  /** Head of a frame, bytes; what is larger travels attached. */
  readonly maxHead: number;
  /** Buffers attached to one message. */
  readonly maxAttached: number;
  /** Credit of a body at its start, bytes. */
  readonly window: number;
  /** The same once `crowdedBodies` bodies run on a lane. */
  readonly crowdedWindow: number;
  readonly crowdedBodies: number;
  /** Attached buffers up to this size are copied, larger ones travel by reference. */
  readonly copyBytes: number;
  /** Calls under way per link and direction. */
  readonly maxCalls: number;
  /** Bytes of requests that one peer may have under work here; beyond it calls are answered BUSY. */
  readonly maxCallBytes: number;
  /** Bodies per lane. */
  readonly maxBodies: number;
  /** Bytes waiting in a lane; beyond it new calls and posts fail with BUSY. */
  readonly maxQueued: number;
  /** Bytes waiting in a lane, answers included; beyond it the peer counts as lost, because it does not read. */
  readonly maxUnread: number;
  /** Bytes of bodies handed to a socket at once. */
  readonly socketBytes: number;
  /** Receive slabs of 256 KiB per node. */
  readonly slabs: number;
  /** Bytes that may be copied off slabs when these run short. */
  readonly copiedBytes: number;
  /** A silent link is asked for a sign of life after this time, and lost after the other. */
  readonly pingAfterMs: number;
  readonly silenceMs: number;
  /** From connection to proof. */
  readonly handshakeMs: number;
  /** Connections that have proven nothing yet. */
  readonly maxStrangers: number;
  readonly maxDeadlineMs: number;
  /** Pause before the first and between later attempts to connect: doubles, ± 50 %. */
  readonly firstRetryMs: number;
  readonly lastRetryMs: number;
}

const KIB = 1024;
const MIB = 1024 * KIB;

export const LIMITS: Limits = {
  frameBytes: 64 * KIB,
  maxFrame: MIB,
  maxHead: 16 * KIB,
  maxAttached: 1024,
  window: MIB,
  crowdedWindow: 256 * KIB,
  crowdedBodies: 32,
  copyBytes: KIB,
  maxCalls: 1024,
  maxCallBytes: 64 * MIB,
  maxBodies: 64,
  maxQueued: 8 * MIB,
  maxUnread: 32 * MIB,
  socketBytes: 256 * KIB,
  slabs: 256,
  copiedBytes: 64 * MIB,
  pingAfterMs: 1_000,
  silenceMs: 3_000,
  handshakeMs: 5_000,
  maxStrangers: 64,
  maxDeadlineMs: 60_000,
  firstRetryMs: 50,
  lastRetryMs: 2_000,
};
