import { type Clock, concat, EMPTY, type Timer } from '@webdfs/base';
import type { Pipe, PipeUser } from './pipe.ts';

/** How bytes travel in one direction between two nodes; shared by all their connections, changed by hand. */
export interface Path {
  /** Nothing arrives; what is under way waits. */
  blocked: boolean;
  delayMs: number;
  bytesPerMs: number;
}

/** What a connection takes from its writer before it pushes back, as a kernel does. */
const KERNEL_BYTES = 256 * 1024;

type Parcel = { readonly at: number; readonly bytes: Uint8Array; readonly left: (() => void) | undefined };

/** One direction of a connection: what was written arrives in order, later. */
class Flow {
  readonly #clock: Clock;
  readonly #path: Path;
  #parcels: Parcel[] = [];
  #underWay = 0;
  /** Until when the line is busy with what was written before. */
  #busyUntil = 0;
  #ending: string | undefined;
  #paused = false;
  #over = false;
  #scheduled: Timer | undefined;
  #soon = false;
  user: PipeUser | undefined;

  constructor(clock: Clock, path: Path) {
    this.#clock = clock;
    this.#path = path;
  }

  get queued(): number {
    return Math.max(0, this.#underWay - KERNEL_BYTES);
  }

  write(buffers: readonly Uint8Array[], left: () => void): void {
    const bytes = concat(buffers);
    if (this.#over || this.#ending !== undefined) return queueMicrotask(left);
    const now = this.#clock.monotonic();
    this.#busyUntil = Math.max(this.#busyUntil, now) + bytes.length / this.#path.bytesPerMs;
    this.#underWay += bytes.length;
    const waits = this.#underWay > KERNEL_BYTES;
    this.#parcels.push({ at: this.#busyUntil + this.#path.delayMs, bytes, left: waits ? left : undefined });
    if (!waits) queueMicrotask(left);
    this.#schedule();
  }

  /** The other end learns of the end after all that was written. */
  end(cause: string): void {
    this.#ending ??= cause;
    this.#schedule();
  }

  /** The writer is gone: it need not wait until its bytes have left. */
  release(): void {
    const lefts = this.#parcels.map(({ left }) => left);
    this.#parcels = this.#parcels.map((parcel) => ({ ...parcel, left: undefined }));
    for (const left of lefts) if (left !== undefined) queueMicrotask(left);
  }

  /** Nothing arrives any more, the end included. */
  drop(): void {
    this.#over = true;
    this.#scheduled?.cancel();
    const parcels = this.#parcels;
    this.#parcels = [];
    this.#underWay = 0;
    for (const { left } of parcels) if (left !== undefined) queueMicrotask(left);
  }

  resume(): void {
    this.#paused = false;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#over || this.#paused || this.#path.blocked || this.#soon) return;
    const at = this.#parcels[0]?.at ?? (this.#ending === undefined ? undefined : this.#busyUntil);
    if (at === undefined) return;
    this.#scheduled?.cancel();
    this.#scheduled = undefined;
    // Whole milliseconds: a fraction may vanish when it is added to the clock.
    const waitMs = Math.ceil(at - this.#clock.monotonic());
    if (waitMs > 0) {
      this.#scheduled = this.#clock.after(waitMs, () => this.#deliver());
      return;
    }
    this.#soon = true;
    this.#clock.soon(() => {
      this.#soon = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    const now = this.#clock.monotonic();
    while (!this.#over && !this.#paused && !this.#path.blocked) {
      const parcel = this.#parcels[0];
      if (parcel === undefined || parcel.at > now) break;
      this.#parcels.shift();
      this.#pass(parcel);
    }
    if (this.#parcels.length === 0 && this.#ending !== undefined && !this.#paused && !this.#path.blocked) {
      if (this.#over) return;
      this.#over = true;
      this.user?.ended(this.#ending);
      return;
    }
    this.#schedule();
  }

  /** Hands over what the user takes; the rest of the parcel waits at the front. */
  #pass(parcel: Parcel): void {
    const { bytes } = parcel;
    let at = 0;
    while (at < bytes.length && !this.#paused && !this.#over) at += this.#passPart(bytes.subarray(at));
    if (at < bytes.length && !this.#over) this.#parcels.unshift({ ...parcel, bytes: bytes.subarray(at) });
    else if (parcel.left !== undefined) queueMicrotask(parcel.left);
  }

  /** One read of the user: returns how many bytes it had room for. */
  #passPart(bytes: Uint8Array): number {
    const space = this.user?.space?.();
    const part = space === undefined ? bytes : bytes.subarray(0, space.length);
    space?.set(part);
    this.#underWay -= part.length;
    if (this.user?.received(space === undefined ? part : space.subarray(0, part.length)) === false) {
      this.#paused = true;
    }
    return part.length;
  }

  get over(): boolean {
    return this.#over;
  }

  /** The path was opened again. */
  wake(): void {
    this.#schedule();
  }
}

/** One end of a connection in memory. */
export class MemoryPipe implements Pipe {
  readonly #out: Flow;
  readonly #in: Flow;

  constructor(out: Flow, into: Flow) {
    this.#out = out;
    this.#in = into;
  }

  get queued(): number {
    return this.#out.queued;
  }

  write(buffers: readonly Uint8Array[], left: () => void): void {
    this.#out.write(buffers, left);
  }

  resume(): void {
    this.#in.resume();
  }

  end(): void {
    this.#in.drop();
    this.#out.end('closed by the peer');
  }

  destroy(): void {
    this.end();
    this.#out.release();
  }

  exporter(): Uint8Array {
    return EMPTY;
  }
}

/** A connection: two pipes, two flows. */
export class MemoryConnection {
  readonly #forth: Flow;
  readonly #back: Flow;
  readonly dialler: MemoryPipe;
  readonly acceptor: MemoryPipe;

  constructor(clock: Clock, paths: { forth: Path; back: Path }) {
    this.#forth = new Flow(clock, paths.forth);
    this.#back = new Flow(clock, paths.back);
    this.dialler = new MemoryPipe(this.#forth, this.#back);
    this.acceptor = new MemoryPipe(this.#back, this.#forth);
  }

  /** Who gets what arrives at each end. */
  join(dialler: PipeUser, acceptor: PipeUser): void {
    this.#back.user = dialler;
    this.#forth.user = acceptor;
  }

  wake(): void {
    this.#forth.wake();
    this.#back.wake();
  }

  get over(): boolean {
    return this.#forth.over && this.#back.over;
  }

  /** Ends it now, at both ends; what is under way is lost. */
  cut(): void {
    const users = [this.#forth.user, this.#back.user];
    this.#forth.drop();
    this.#back.drop();
    for (const user of users) user?.ended('connection reset');
  }

  /** One end has died: it hears nothing any more, and the other does only if it is `told`. What is under way is lost. */
  abandon(end: 'dialler' | 'acceptor', told: boolean): void {
    const [dead, other] = end === 'dialler' ? [this.#back, this.#forth] : [this.#forth, this.#back];
    const user = other.user;
    const over = other.over;
    dead.user = undefined;
    this.#forth.drop();
    this.#back.drop();
    if (told && !over) user?.ended('connection reset');
  }
}
