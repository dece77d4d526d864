import { type Clock, messageOf, WebdfsError } from '@webdfs/base';
import { FrameReader, type FrameSink, type Kind } from './frame.ts';
import type { Limits } from './limits.ts';
import type { CallHead } from './message.ts';
import { Packer, type PackPool } from './packer.ts';
import type { Pipe, PipeUser } from './pipe.ts';
import { type Lender, type SlabPool, SlabReader } from './slabs.ts';
import type { Message, Piece } from './transport.ts';

/** Who takes a lane's frames: first the greeting, then the session. Errors thrown by the first two end the lane. */
export interface LaneUser extends FrameSink {
  /** There is room for body frames: pack some. */
  fill(): void;
  closed(cause: string): void;
}

/** How long a lane that was closed in peace may take to send its last bytes. */
const LINGER_MS = 500;

export interface LaneOptions {
  readonly clock: Clock;
  readonly limits: Limits;
  readonly packs: PackPool;
  /** For lanes that receive bodies. */
  readonly slabs?: SlabPool;
}

/**
 * One connection as a sender and receiver of frames. Everything packed in one turn of the event loop leaves in one
 * write at its end.
 */
export class Lane implements PipeUser {
  /** When the last bytes came, `Clock.monotonic`. */
  heardAt: number;
  readonly space?: () => Uint8Array;
  readonly #options: LaneOptions;
  readonly #packer: Packer;
  readonly #reader: FrameReader;
  readonly #slabs: SlabReader | undefined;
  #pipe: Pipe | undefined;
  #user: LaneUser;
  #scheduled = false;
  #closed = false;

  constructor(user: LaneUser, options: LaneOptions) {
    this.#user = user;
    this.#options = options;
    this.#packer = new Packer(options.packs, options.limits);
    this.#reader = new FrameReader(
      {
        // Slabs are written again while handlers still read their messages.
        frame: (kind, stream, head, attached) =>
          options.slabs === undefined
            ? this.#user.frame(kind, stream, head, attached)
            : this.#user.frame(kind, stream, head.slice(), attached.slice()),
        data: (stream, bytes, last) => this.#user.data(stream, bytes, last),
      },
      options.limits,
    );
    this.heardAt = options.clock.monotonic();
    if (options.slabs !== undefined) {
      const slabs = new SlabReader(options.slabs);
      this.#slabs = slabs;
      this.space = () => slabs.space();
    }
  }

  /** Gives the lane its connection, once. */
  attach(pipe: Pipe): void {
    this.#pipe = pipe;
  }

  /** The peer has proven who it is: from now on frames go to `user`. */
  trust(user: LaneUser): void {
    this.#user = user;
    this.#reader.trust();
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Bytes packed or written that have not left. */
  get queued(): number {
    return this.#packer.bytes + (this.#pipe?.queued ?? 0);
  }

  exporter(): Uint8Array {
    return this.#pipe!.exporter();
  }

  received(bytes: Uint8Array): boolean {
    if (this.#closed) return true;
    this.heardAt = this.#options.clock.monotonic();
    this.#slabs?.filled(bytes.length);
    try {
      this.#reader.push(bytes);
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      this.close(messageOf(error));
      return true;
    }
    if (this.#slabs === undefined || this.#slabs.ready) return true;
    this.#slabs.whenReady(() => this.#pipe?.resume());
    return false;
  }

  sendCall(kind: Kind, stream: number, head: CallHead, message: Message): void {
    if (this.#closed) return;
    this.#packer.call(kind, stream, head, message);
    this.wake();
  }

  sendReply(stream: number, message: Message): void {
    if (this.#closed) return;
    this.#packer.reply(stream, message);
    this.wake();
    if (this.queued > this.#options.limits.maxUnread) this.close('the peer does not read');
  }

  sendControl(kind: Kind, stream: number, head: Uint8Array): void {
    if (this.#closed) return;
    this.#packer.control(kind, stream, head);
    this.wake();
    if (this.queued > this.#options.limits.maxUnread) this.close('the peer does not read');
  }

  /** Packs a body frame; only from `fill`. */
  sendData(stream: number, bytes: Uint8Array, flags: number, sent: (() => void) | undefined): void {
    this.#packer.data(stream, bytes, flags, sent);
  }

  /** Lends bytes that came in a DATA frame. */
  lend(bytes: Uint8Array, lender: Lender): Piece {
    return this.#slabs!.lend(bytes, lender);
  }

  /** Something waits to be sent: it leaves at the end of this turn. */
  wake(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    this.#options.clock.soon(this.#flush);
  }

  /** Sends what is packed, then closes. */
  end(): void {
    if (this.#closed) return;
    this.#write();
    this.#shut('closed here', (pipe) => {
      pipe.end();
      // A peer that does not read is not waited for.
      this.#options.clock.after(LINGER_MS, () => pipe.destroy());
    });
  }

  /** Closes now; what was not sent is dropped. */
  close(cause: string): void {
    this.#shut(cause, (pipe) => pipe.destroy());
  }

  /** The pipe has ended. */
  ended(cause: string): void {
    this.#shut(cause, () => undefined);
  }

  #shut(cause: string, finish: (pipe: Pipe) => void): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.stop();
    this.#slabs?.close();
    if (this.#pipe !== undefined) finish(this.#pipe);
    this.#packer.take().left();
    this.#user.closed(cause);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    if (!this.#closed) this.#write();
  };

  #write(): void {
    this.#user.fill();
    if (this.#packer.bytes === 0 || this.#pipe === undefined) return;
    const parcel = this.#packer.take();
    this.#pipe.write(parcel.buffers, () => {
      parcel.left();
      // Bodies go on as the socket takes them.
      if (!this.#closed && !this.#scheduled) this.#write();
    });
  }
}
