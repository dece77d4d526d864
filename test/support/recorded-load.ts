import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { codeOf, REMEDY, type SeededRandom, WebdfsError } from '@webdfs/base';
import type { S3Client } from '@webdfs/webdfs';
import type { RunningCluster } from './running-cluster.ts';

/**
 * A mixed load that remembers what it was told. Every key belongs to one worker, so that what a read may show is known
 * exactly: the last acknowledged state, or one that was asked for since and never answered.
 */

/** SHA-256 of the content, or that there is none. */
type State = string;
const ABSENT: State = 'absent';

interface KeyHistory {
  acknowledged: State;
  /** Writes whose answer never came, since the last acknowledgement: each may have happened, or may yet. */
  doubtful: State[];
}

export interface LoadCounts {
  writes: number;
  acknowledged: number;
  refused: number;
  unknown: number;
  reads: number;
  readsRefused: number;
}

const SIZES = [0, 1, 4096, 4096, 4096, 4096, 65_537, 200_000, 200_000, 1_000_000, 9_000_000] as const;
const CONNECTIONS_PER_WORKER = 2;

export class RecordedLoad {
  readonly bucket: string;
  readonly counts: LoadCounts = { writes: 0, acknowledged: 0, refused: 0, unknown: 0, reads: 0, readsRefused: 0 };
  /** What went wrong beyond doubt: wrong bytes, a lost write, an error that no fault explains. */
  readonly violations: string[] = [];
  readonly #cluster: RunningCluster;
  readonly #random: SeededRandom;
  readonly #keys = new Map<string, KeyHistory>();
  readonly #workers: Promise<void>[] = [];
  #stopping = false;

  constructor(cluster: RunningCluster, bucket: string, random: SeededRandom) {
    this.#cluster = cluster;
    this.bucket = bucket;
    this.#random = random;
  }

  start(workers: number, keysPerWorker: number): void {
    for (let worker = 0; worker < workers; worker++) this.#workers.push(this.#work(worker, keysPerWorker));
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#workers);
  }

  async #work(worker: number, keys: number): Promise<void> {
    using client = this.#cluster.client(CONNECTIONS_PER_WORKER);
    for (let step = 0; !this.#stopping; step++) {
      const key = `worker-${worker}/key-${this.#random.below(keys)}`;
      const dice = this.#random.fraction();
      if (dice < 0.5) await this.#put(client, key, step);
      else if (dice < 0.6) await this.#remove(client, key);
      else await this.#read(client, key);
    }
  }

  #history(key: string): KeyHistory {
    let history = this.#keys.get(key);
    if (history === undefined) {
      history = { acknowledged: ABSENT, doubtful: [] };
      this.#keys.set(key, history);
    }
    return history;
  }

  async #write(key: string, state: State, send: () => Promise<unknown>): Promise<void> {
    const history = this.#history(key);
    this.counts.writes++;
    history.doubtful.push(state);
    try {
      await send();
      this.counts.acknowledged++;
      history.acknowledged = state;
      history.doubtful = [];
    } catch (error) {
      const code = codeOf(error);
      if (code !== undefined && REMEDY[code] === 'retry') {
        // 503 or a cut connection: nobody can say whether it happened
        if (error instanceof WebdfsError && error.details['status'] === 503) this.counts.refused++;
        else this.counts.unknown++;
        return;
      }
      this.violations.push(`write of ${key}: ${String(error)}`);
    }
  }

  async #put(client: S3Client, key: string, step: number): Promise<void> {
    const size = SIZES[this.#random.below(SIZES.length)]!;
    const body = contentOf(`${key} ${step}`, size);
    await this.#write(key, sha256(body), () => client.call({ method: 'PUT', bucket: this.bucket, key, body }));
  }

  async #remove(client: S3Client, key: string): Promise<void> {
    await this.#write(key, ABSENT, () => client.call({ method: 'DELETE', bucket: this.bucket, key }));
  }

  async #look(client: S3Client, key: string): Promise<State> {
    try {
      return sha256(await buffer(await client.get(this.bucket, key)));
    } catch (error) {
      if (codeOf(error) === 'NOT_FOUND') return ABSENT;
      throw error;
    }
  }

  async #read(client: S3Client, key: string): Promise<void> {
    this.counts.reads++;
    const history = this.#history(key);
    try {
      const seen = await this.#look(client, key);
      if (seen === history.acknowledged) return;
      if (!history.doubtful.includes(seen)) {
        this.violations.push(`read of ${key} gave ${seen}, acknowledged ${history.acknowledged}`);
      }
    } catch {
      // a refusal, or a body that was cut short: the client sees that, and no wrong bytes
      this.counts.readsRefused++;
    }
  }

  /** Every key: what is there is the acknowledged state or a doubtful one, whole; and every copy of it is sound. */
  async verify(): Promise<{ keys: number; present: number; copies: number }> {
    using client = this.#cluster.client(CONNECTIONS_PER_WORKER);
    let present = 0;
    let copies = 0;
    for (const [key, history] of this.#keys) {
      const seen = await this.#look(client, key);
      if (seen !== history.acknowledged && !history.doubtful.includes(seen)) {
        this.violations.push(`in the end ${key} is ${seen}, acknowledged ${history.acknowledged}`);
      }
      if (seen === ABSENT) continue;
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
    return { keys: this.#keys.size, present, copies };
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Bytes that differ between writes and within themselves, cheaply. */
function contentOf(name: string, size: number): Uint8Array {
  const bytes = Buffer.alloc(size, `${name};`);
  for (let offset = 0; offset + 4 <= size; offset += 4096) bytes.writeUInt32LE(offset, offset);
  return bytes;
}
