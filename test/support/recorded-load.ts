import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { codeOf, REMEDY, type SeededRandom, sleep, systemClock, WebdfsError } from '@webdfs/base';
import {
  type Action,
  checkHistory,
  drawOperations,
  type HistoryReport,
  HistoryRecorder,
  type Result,
} from '@webdfs/history';
import type { S3Client } from '@webdfs/webdfs';

/** A mixed load of clients that share their keys, and a record of all they asked and were told. */

/** Whom the load is put on. */
export interface LoadTarget {
  client(connections?: number): S3Client;
}

export interface LoadCounts {
  writes: number;
  acknowledged: number;
  /** Conditional writes whose condition did not hold. */
  conflicts: number;
  /** Answered with 503. */
  refused: number;
  /** Otherwise without an answer that says what became of it. */
  unknown: number;
  reads: number;
  readsRefused: number;
  /** Of all requests, those whose door was closed, or that were cut off. */
  unanswered: number;
  /** Longest time, in milliseconds, in which no write of any client was acknowledged. */
  longestPauseMs: number;
}

/** Each holds the name of its write, so that no two writes are of the same bytes. */
const SIZES = [64, 64, 4096, 4096, 4096, 4096, 65_537, 200_000, 200_000, 1_000_000, 9_000_000] as const;
const CONNECTIONS_PER_WORKER = 2;
/** What a client waits before it tries another door. */
const UNANSWERED_MS = 50;

export class RecordedLoad implements AsyncDisposable {
  readonly bucket: string;
  readonly counts: LoadCounts = {
    writes: 0,
    acknowledged: 0,
    conflicts: 0,
    refused: 0,
    unknown: 0,
    reads: 0,
    readsRefused: 0,
    unanswered: 0,
    longestPauseMs: 0,
  };
  /** What went wrong beyond doubt: damaged bytes, an error that no fault explains, a history that nothing explains. */
  readonly violations: string[] = [];
  readonly #target: LoadTarget;
  readonly #random: SeededRandom;
  readonly #recorder = new HistoryRecorder(() => performance.now());
  readonly #keys = new Set<string>();
  readonly #workers: Promise<void>[] = [];
  #acknowledgedAt = performance.now();
  #stopping = false;

  constructor(target: LoadTarget, bucket: string, random: SeededRandom) {
    this.#target = target;
    this.bucket = bucket;
    this.#random = random;
  }

  /** @param pauseMs  what each client waits between its requests */
  start(workers: number, keys: number, pauseMs = 0): void {
    this.#stopping = false;
    this.#acknowledgedAt = performance.now();
    for (let worker = 0; worker < workers; worker++) this.#workers.push(this.#work(worker, keys, pauseMs));
  }

  /** Forgets the longest pause so far. */
  restartPause(): void {
    this.counts.longestPauseMs = 0;
    this.#acknowledgedAt = performance.now();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#workers);
  }

  /** A load ends with its test, however that ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #work(worker: number, keys: number, pauseMs: number): Promise<void> {
    let client = this.#target.client(CONNECTIONS_PER_WORKER);
    for (let step = 0; !this.#stopping; step++) {
      const key = `key-${this.#random.below(keys)}`;
      this.#keys.add(key);
      const { unanswered } = this.counts;
      await this.#request(client, { worker, key, step });
      if (this.counts.unanswered > unanswered) {
        // as behind a proxy: whoever does not answer is left for the next
        client[Symbol.dispose]();
        client = this.#target.client(CONNECTIONS_PER_WORKER);
        await sleep(systemClock, UNANSWERED_MS);
      }
      if (pauseMs > 0) await sleep(systemClock, pauseMs);
    }
    client[Symbol.dispose]();
  }

  async #request(client: S3Client, at: { worker: number; key: string; step: number }): Promise<void> {
    const { worker, key, step } = at;
    const dice = this.#random.fraction();
    if (dice < 0.45) await this.#put(client, worker, key, step);
    else if (dice < 0.5) await this.#create(client, worker, key, step);
    else if (dice < 0.6) await this.#remove(client, worker, key);
    else await this.#read(client, worker, key);
  }

  async #write(worker: number, key: string, action: Action, send: () => Promise<unknown>): Promise<void> {
    this.counts.writes++;
    const asked = this.#recorder.ask(worker, key, action);
    try {
      await send();
      asked.answered({ type: 'done' });
      this.#acknowledged();
    } catch (error) {
      const answer = this.#answerOf(error);
      if (answer === undefined) asked.unknown();
      else asked.answered(answer);
      const code = codeOf(error);
      // this process may have stood still in the midst of a body: clients of S3 send it again
      const isSlow = error instanceof WebdfsError && error.details['s3Code'] === 'RequestTimeout';
      if (answer === undefined && !isSlow && (code === undefined || REMEDY[code] !== 'retry')) {
        this.violations.push(`write of ${key}: ${String(error)}`);
      }
    }
  }

  #acknowledged(): void {
    this.counts.acknowledged++;
    const now = performance.now();
    this.counts.longestPauseMs = Math.max(this.counts.longestPauseMs, Math.round(now - this.#acknowledgedAt));
    this.#acknowledgedAt = now;
  }

  #answerOf(error: unknown): Exclude<Result, { type: 'unknown' }> | undefined {
    const status = error instanceof WebdfsError ? error.details['status'] : undefined;
    if (status === 412) {
      this.counts.conflicts++;
      return { type: 'refused' };
    }
    // 503 too says nothing: a primary that died may have passed the write on
    if (status === 503) this.counts.refused++;
    else this.counts.unknown++;
    if (status === undefined) this.counts.unanswered++;
    return undefined;
  }

  async #put(client: S3Client, worker: number, key: string, step: number): Promise<void> {
    const body = contentOf(`${key} ${worker} ${step}`, SIZES[this.#random.below(SIZES.length)]!);
    await this.#write(worker, key, { type: 'write', value: nameOf(body) }, () =>
      client.call({ method: 'PUT', bucket: this.bucket, key, body }),
    );
  }

  /** A write that asks for no object to be there. */
  async #create(client: S3Client, worker: number, key: string, step: number): Promise<void> {
    const body = contentOf(`${key} ${worker} ${step}`, 4096);
    await this.#write(worker, key, { type: 'write', value: nameOf(body), condition: { type: 'absent' } }, () =>
      client.call({ method: 'PUT', bucket: this.bucket, key, body, headers: { 'if-none-match': '*' } }),
    );
  }

  async #remove(client: S3Client, worker: number, key: string): Promise<void> {
    await this.#write(worker, key, { type: 'delete' }, () =>
      client.call({ method: 'DELETE', bucket: this.bucket, key }),
    );
  }

  async #look(client: S3Client, worker: number, key: string): Promise<string | undefined> {
    const asked = this.#recorder.ask(worker, key, { type: 'read' });
    let value: string | undefined;
    try {
      value = nameOf(await buffer(await client.get(this.bucket, key)));
    } catch (error) {
      if (codeOf(error) !== 'NOT_FOUND') {
        asked.unknown();
        throw error;
      }
    }
    asked.answered({ type: 'read', value });
    return value;
  }

  async #read(client: S3Client, worker: number, key: string): Promise<void> {
    this.counts.reads++;
    try {
      await this.#look(client, worker, key);
    } catch (error) {
      // a refusal, or a body that was cut short: the client sees that, and no wrong bytes
      this.counts.readsRefused++;
      if (!(error instanceof WebdfsError) || error.details['status'] === undefined) this.counts.unanswered++;
    }
  }

  /** Reads every key once more, asks for every copy of it, and judges all that was asked and told since the start. */
  async verify(): Promise<{ keys: number; present: number; copies: number }> {
    using client = this.#target.client(CONNECTIONS_PER_WORKER);
    let present = 0;
    let copies = 0;
    for (const key of this.#keys) {
      if ((await this.#look(client, -1, key)) === undefined) continue;
      present++;
      const { body } = await client.call({
        method: 'GET',
        bucket: '-',
        key: 'where',
        query: { bucket: this.bucket, key },
      });
      const report: { sound: boolean; places: { copies: unknown[] }[] } = JSON.parse(body);
      copies += report.places.reduce((sum, place) => sum + place.copies.length, 0);
      if (!report.sound) this.violations.push(`not every copy of ${key} is sound: ${body}`);
    }
    this.#judge(checkHistory(this.#recorder.operations()));
    return { keys: this.#keys.size, present, copies };
  }

  #judge(report: HistoryReport): void {
    if (report.offence !== undefined) {
      this.violations.push(
        `${report.offence.key} is not linearizable:\n${drawOperations(report.offence.operations).join('\n')}`,
      );
    }
    for (const key of report.undecided) this.violations.push(`${key}: too many unknown answers to judge its history`);
  }
}

/** What histories call these bytes. */
function nameOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Bytes that differ between writes and within themselves, cheaply. */
function contentOf(name: string, size: number): Uint8Array {
  const bytes = Buffer.alloc(size, `${name};`);
  for (let offset = 0; offset + 4 <= size; offset += 4096) bytes.writeUInt32LE(offset, offset);
  return bytes;
}
