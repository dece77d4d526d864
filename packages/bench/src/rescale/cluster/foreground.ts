import { type Clock, messageOf, type Random, sleep } from '@webdfs/base';
import type { S3Client } from '@webdfs/webdfs/remote';
import { Histogram } from '../../object/histogram.ts';

/** What clients saw in one stretch of time. */
export interface ForegroundFigures {
  readonly seconds: number;
  readonly reads: number;
  readonly writes: number;
  readonly readBytes: number;
  readonly writtenBytes: number;
  /** Milliseconds. */
  readonly readP50: number;
  readonly readP99: number;
  readonly writeP50: number;
  readonly writeP99: number;
  readonly errors: number;
  readonly firstError: string | undefined;
}

const KEYS = 64;
const OBJECT_BYTES = 65_536;
/** One request in so many writes. */
const WRITES = 4;
const TRIES = 5;
const TRY_PAUSE_MS = 200;

/** Clients that read and overwrite small objects, pause, and compare every byte that they read with what they wrote last. */
export class Foreground {
  readonly #options: ForegroundOptions;
  /** By key: what the last acknowledged write left there; each client has keys of its own. */
  readonly #held = new Map<string, Uint8Array>();
  #reads: Histogram;
  #writes: Histogram;
  #bytes = { read: 0, written: 0 };
  #errors = 0;
  #firstError: string | undefined;
  #began: number;

  constructor(options: ForegroundOptions) {
    this.#options = options;
    this.#reads = new Histogram(options.random);
    this.#writes = new Histogram(options.random);
    this.#began = options.clock.monotonic();
  }

  /** Runs until `stop` aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const clients = Array.from({ length: this.#options.clients }, (_, i) => this.#client(i, stop));
    await Promise.all(clients);
  }

  /** What was seen since the last time this was asked. */
  take(): ForegroundFigures {
    const { clock, random } = this.#options;
    const now = clock.monotonic();
    const [readP50, readP99] = this.#reads.percentiles([0.5, 0.99]);
    const [writeP50, writeP99] = this.#writes.percentiles([0.5, 0.99]);
    const figures: ForegroundFigures = {
      seconds: (now - this.#began) / 1_000,
      reads: this.#reads.count,
      writes: this.#writes.count,
      readBytes: this.#bytes.read,
      writtenBytes: this.#bytes.written,
      readP50: readP50!,
      readP99: readP99!,
      writeP50: writeP50!,
      writeP99: writeP99!,
      errors: this.#errors,
      firstError: this.#firstError,
    };
    this.#reads = new Histogram(random);
    this.#writes = new Histogram(random);
    this.#bytes = { read: 0, written: 0 };
    this.#errors = 0;
    this.#firstError = undefined;
    this.#began = now;
    return figures;
  }

  async #client(number: number, stop: AbortSignal): Promise<void> {
    const { random, clock, pauseMs } = this.#options;
    for (let i = 0; !stop.aborted; i++) {
      const key = `foreground/${number}/${Math.floor(random.fraction() * KEYS)}`;
      const isWrite = i % WRITES === 0 || !this.#held.has(key);
      await (isWrite ? this.#write(key) : this.#read(key));
      await sleep(clock, pauseMs, stop).catch(() => undefined);
    }
  }

  async #write(key: string): Promise<void> {
    const { client, bucket, random, clock } = this.#options;
    const body = random.bytes(OBJECT_BYTES);
    const began = clock.monotonic();
    // whether a write that failed happened is not known: it is sent again until it is
    const isDone = await this.#patiently(() => client.call({ method: 'PUT', bucket, key, body }));
    if (!isDone) {
      this.#held.delete(key);
      return;
    }
    this.#writes.add(clock.monotonic() - began);
    this.#held.set(key, body);
    this.#bytes.written += body.length;
  }

  async #read(key: string): Promise<void> {
    const { client, bucket, clock } = this.#options;
    const began = clock.monotonic();
    await this.#patiently(async () => {
      const held = this.#held.get(key)!;
      const pieces: Uint8Array[] = [];
      for await (const piece of (await client.open({ method: 'GET', bucket, key })) as AsyncIterable<Uint8Array>) {
        pieces.push(piece);
      }
      if (Buffer.compare(Buffer.concat(pieces), held) !== 0) {
        this.#note(`${key} gave other bytes than were written`);
        return;
      }
      this.#reads.add(clock.monotonic() - began);
      this.#bytes.read += held.length;
    });
  }

  /** A client tries again for a while, as those of S3 do; its latency has all of that. */
  async #patiently(work: () => Promise<unknown>): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await work();
        return true;
      } catch (error) {
        if (tries < TRIES) await sleep(this.#options.clock, TRY_PAUSE_MS);
        else {
          this.#note(messageOf(error));
          return false;
        }
      }
    }
  }

  #note(problem: string): void {
    this.#errors++;
    this.#firstError ??= problem;
  }
}

interface ForegroundOptions {
  readonly client: S3Client;
  readonly bucket: string;
  readonly clients: number;
  /** Between a client's requests. */
  readonly pauseMs: number;
  readonly clock: Clock;
  readonly random: Random;
}
