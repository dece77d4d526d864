import type { Clock } from '@webdfs/base';
import { Rate } from './rate.ts';

/** What a node gave and took so that groups could move, and how fast it was seen to do so. Bytes, and bytes per second. */
export interface MoveStatus {
  /** Of objects, since the node started; what travels with them is not counted. */
  readonly receivedBytes: number;
  readonly sentBytes: number;
  /** Lately. */
  readonly receivePerSecond: number;
  readonly sendPerSecond: number;
  /** The most over three seconds without a pause, since the node started; 0: not measured yet. */
  readonly fastestReceive: number;
  readonly fastestSend: number;
  /** Of the device while it was busy with moves; 0: not measured yet. */
  readonly readPerSecond: number;
  readonly writePerSecond: number;
}

/** A rate is that of so long a time without a pause of more than the other, milliseconds. */
const WINDOW_MS = 3_000;
const PAUSE_MS = 1_000;
/** A device's rate says something after so much of its time, and follows what it did last in so much of it. */
const LEAST_BUSY_MS = 250;
const BUSY_SPAN_MS = 10_000;

/** One direction of a node's traffic. */
class Flow {
  readonly #clock: Clock;
  readonly #rate: Rate;
  #bytes = 0;
  #fastest = 0;
  #lastAt = -Infinity;
  #window = { at: 0, bytes: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#rate = new Rate(clock);
  }

  count(bytes: number): void {
    const at = this.#clock.monotonic();
    const lasted = at - this.#window.at;
    if (at - this.#lastAt > PAUSE_MS) this.#window = { at, bytes: this.#bytes };
    else if (lasted >= WINDOW_MS) {
      this.#fastest = Math.max(this.#fastest, Math.round(((this.#bytes - this.#window.bytes) * 1_000) / lasted));
      this.#window = { at, bytes: this.#bytes };
    }
    this.#lastAt = at;
    this.#bytes += bytes;
    this.#rate.perSecond(this.#bytes);
  }

  status(): { readonly bytes: number; readonly perSecond: number; readonly fastest: number } {
    return { bytes: this.#bytes, perSecond: this.#rate.perSecond(this.#bytes), fastest: this.#fastest };
  }
}

/** A device as those see it who wait for it: bytes by the time in which at least one of them waited. */
class DeviceUse {
  readonly #clock: Clock;
  #waiting = 0;
  #since = 0;
  #busyMs = 0;
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async run<Result>(bytes: number, work: () => Promise<Result>): Promise<Result> {
    if (this.#waiting++ === 0) this.#since = this.#clock.monotonic();
    try {
      return await work();
    } finally {
      this.#bytes += bytes;
      if (--this.#waiting === 0) this.#idle(this.#clock.monotonic());
    }
  }

  #idle(at: number): void {
    this.#busyMs += at - this.#since;
    if (this.#busyMs <= BUSY_SPAN_MS) return;
    this.#busyMs /= 2;
    this.#bytes /= 2;
  }

  perSecond(): number {
    return this.#busyMs < LEAST_BUSY_MS ? 0 : Math.round((this.#bytes * 1_000) / this.#busyMs);
  }
}

/** Counts on one node what moves take; all figures are of its own clock. */
export class MoveMeter {
  readonly #received: Flow;
  readonly #sent: Flow;
  readonly #reading: DeviceUse;
  readonly #writing: DeviceUse;

  constructor(clock: Clock) {
    this.#received = new Flow(clock);
    this.#sent = new Flow(clock);
    this.#reading = new DeviceUse(clock);
    this.#writing = new DeviceUse(clock);
  }

  received(bytes: number): void {
    this.#received.count(bytes);
  }

  sent(bytes: number): void {
    this.#sent.count(bytes);
  }

  /** Reads from the node's device. */
  async read<Result>(bytes: number, work: () => Promise<Result>): Promise<Result> {
    return await this.#reading.run(bytes, work);
  }

  /** Writes to it. */
  async write<Result>(bytes: number, work: () => Promise<Result>): Promise<Result> {
    return await this.#writing.run(bytes, work);
  }

  status(): MoveStatus {
    const received = this.#received.status();
    const sent = this.#sent.status();
    return {
      receivedBytes: received.bytes,
      sentBytes: sent.bytes,
      receivePerSecond: received.perSecond,
      sendPerSecond: sent.perSecond,
      fastestReceive: received.fastest,
      fastestSend: sent.fastest,
      readPerSecond: this.#reading.perSecond(),
      writePerSecond: this.#writing.perSecond(),
    };
  }
}
