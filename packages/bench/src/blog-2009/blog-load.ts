import { type Clock, messageOf, sleep, type SeededRandom } from '@webdfs/base';
import type { Content } from './content.ts';
import { PUBLISHED } from './published.ts';
import type { BlogTarget } from './target.ts';

export interface LoadOptions {
  readonly target: BlogTarget;
  readonly content: Content;
  readonly uploads: number;
  readonly clients: number;
  /** A client waits up to so long between its requests. */
  readonly thinkMs: number;
  /** Nodes killed on the way, evenly over the uploads. */
  readonly kills: number;
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly signal: AbortSignal;
  readonly onProgress: (what: string) => void;
}

export interface LoadFigures {
  seconds: number;
  uploads: number;
  uploadedBytes: number;
  downloads: number;
  downloadedBytes: number;
  /** Requests that were sent again, because they were refused or nobody answered. */
  retries: number;
  /** Requests that were given up, and what the first of them met. */
  failed: number;
  firstFailure: string | undefined;
  /** Reads that gave other bytes than were written, or none. */
  wrongReads: number;
  /** Longest that one request took, its retries included. */
  longestMs: number;
  readonly killed: number[];
}

const RETRY_MS = 100;
const GIVE_UP_MS = 120_000;

/** As clients of S3 do: again until it is answered, for a while; how often it was asked again. @throws what it met last */
async function askPatiently(
  request: () => Promise<void>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<number> {
  const until = clock.monotonic() + GIVE_UP_MS;
  for (let retries = 0; ; retries++) {
    try {
      await request();
      return retries;
    } catch (error) {
      if (clock.monotonic() > until || signal.aborted) throw error;
      await sleep(clock, RETRY_MS);
    }
  }
}

/** The same for something that gives a value. */
export async function patiently<T>(
  ask: () => Promise<T>,
  seams: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<T> {
  let answer: { readonly value: T } | undefined;
  await askPatiently(async () => {
    answer = { value: await ask() };
  }, seams);
  return answer!.value;
}

/** Clients in a closed loop: 2 of 10 requests write a new object, the others read one that is acknowledged. */
export class BlogLoad {
  readonly #options: LoadOptions;
  readonly figures: LoadFigures = {
    seconds: 0,
    uploads: 0,
    uploadedBytes: 0,
    downloads: 0,
    downloadedBytes: 0,
    retries: 0,
    failed: 0,
    firstFailure: undefined,
    wrongReads: 0,
    longestMs: 0,
    killed: [],
  };
  /** Numbers of the objects that are acknowledged. */
  readonly acknowledged: number[] = [];
  #next = 0;
  #killing: Promise<void> | undefined;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { clock, clients } = this.#options;
    const began = clock.monotonic();
    await Promise.all(Array.from({ length: clients }, () => this.#client()));
    await this.#killing;
    this.figures.seconds = (clock.monotonic() - began) / 1_000;
  }

  async #client(): Promise<void> {
    const { random, clock, thinkMs, uploads, signal } = this.#options;
    while (this.#next < uploads && !signal.aborted) {
      const isWrite = random.fraction() < PUBLISHED.writeShare;
      if (isWrite) await this.#upload(this.#next++);
      else if (this.acknowledged.length > 0) await this.#download();
      await sleep(clock, random.below(thinkMs + 1), signal).catch(() => undefined);
    }
  }

  async #upload(index: number): Promise<void> {
    const { target, content } = this.#options;
    const bytes = content.bytesOf(index);
    const isDone = await this.#patiently(() => target.put(content.keyOf(index), bytes));
    if (!isDone) return;
    this.acknowledged.push(index);
    this.figures.uploads++;
    this.figures.uploadedBytes += bytes.length;
    this.#progress();
  }

  async #download(): Promise<void> {
    const { target, content, random } = this.#options;
    const index = this.acknowledged[random.below(this.acknowledged.length)]!;
    let bytes: Uint8Array | undefined;
    const isDone = await this.#patiently(async () => {
      bytes = await target.get(content.keyOf(index));
    });
    if (!isDone) return;
    this.figures.downloads++;
    this.figures.downloadedBytes += bytes?.length ?? 0;
    if (bytes === undefined || Buffer.compare(bytes, content.bytesOf(index)) !== 0) this.figures.wrongReads++;
  }

  async #patiently(request: () => Promise<void>): Promise<boolean> {
    const { clock } = this.#options;
    const began = clock.monotonic();
    try {
      this.figures.retries += await askPatiently(request, this.#options);
      this.figures.longestMs = Math.max(this.figures.longestMs, clock.monotonic() - began);
      return true;
    } catch (error) {
      this.figures.failed++;
      this.figures.firstFailure ??= messageOf(error);
      return false;
    }
  }

  #progress(): void {
    const { uploads, kills, target, onProgress } = this.#options;
    const { figures } = this;
    if (figures.uploads % 100 === 0) onProgress(`${figures.uploads} of ${uploads} uploads`);
    const due = Math.floor((figures.uploads / uploads) * kills + 0.5);
    if (figures.killed.length >= Math.min(due, kills) || this.#killing !== undefined) return;
    this.#killing = patiently(() => target.kill(), this.#options).then(
      (node) => {
        figures.killed.push(node);
        this.#killing = undefined;
      },
      // the report counts kills that did not come about
      () => undefined,
    );
  }
}
