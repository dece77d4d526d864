import { createHash } from 'node:crypto';
import { type Clock, codeOf, messageOf, sleep, WebdfsError } from '@webdfs/base';
import type { WhereReport } from './reports.ts';
import type { ListedKey } from './s3-answers.ts';
import type { S3Client } from './s3-client.ts';

export interface VerifyProblem {
  readonly bucket: string;
  /** Missing where a bucket could not be listed. */
  readonly key?: string;
  readonly what: string;
}

/** What was proved from outside, and what was not. */
export interface VerifyFindings {
  buckets: number;
  /** Objects read to their end, the MD5 of their bytes compared with their ETag. */
  objects: number;
  bytes: number;
  /** Copies (of records and blocks) that their nodes read and verified for this, and found good. */
  copies: number;
  /** Objects that were deleted between being listed and being read. */
  deleted: number;
  /** Missing or damaged, as a client or at a node. */
  bad: number;
  /** Could not be read or asked: nothing is known. */
  notCounted: number;
  /** The first of both, by name. */
  readonly problems: VerifyProblem[];
}

export interface VerifyOptions {
  readonly client: S3Client;
  readonly clock: Clock;
  /** All, if undefined. */
  readonly bucket?: string;
  readonly prefix?: string;
  /** Objects read at once. */
  readonly atOnce: number;
  readonly signal: AbortSignal;
  /** After each object. */
  readonly onProgress?: (findings: Readonly<VerifyFindings>) => void;
}

const MAX_PROBLEMS = 1_000;
/** Tries where an object is replaced while it is looked at, or the store asks to come back. */
const TRIES = 6;
const PAUSE_MS = 500;

/** It was replaced while it was read: what was found is of no one version. */
class Replaced extends Error {}

/**
 * Reads every object through the S3 door and compares it with its ETag, and has every node that holds a part of it read
 * and verify its copy. Believes nothing that the store counted itself: only what was listed, read and hashed here, and the
 * answers of the single nodes.
 *
 * @throws ACCESS_DENIED, CANCELLED, BAD_CONFIG; UNAVAILABLE if not even the buckets can be listed
 */
export async function verifyObjects(options: VerifyOptions): Promise<VerifyFindings> {
  const findings: VerifyFindings = {
    buckets: 0,
    objects: 0,
    bytes: 0,
    copies: 0,
    deleted: 0,
    bad: 0,
    notCounted: 0,
    problems: [],
  };
  const { client, bucket } = options;
  const names = bucket === undefined ? (await client.listBuckets()).map(({ name }) => name) : [bucket];
  for (const name of names) {
    findings.buckets++;
    await new BucketProof(name, options, findings).run();
  }
  return findings;
}

class BucketProof {
  readonly #bucket: string;
  readonly #options: VerifyOptions;
  readonly #findings: VerifyFindings;

  constructor(bucket: string, options: VerifyOptions, findings: VerifyFindings) {
    this.#bucket = bucket;
    this.#options = options;
    this.#findings = findings;
  }

  async run(): Promise<void> {
    const { client, prefix = '', atOnce, signal } = this.#options;
    const running = new Set<Promise<void>>();
    try {
      for await (const object of client.list(this.#bucket, prefix)) {
        signal.throwIfAborted();
        const work: Promise<void> = this.#object(object).finally(() => running.delete(work));
        running.add(work);
        if (running.size >= atOnce) await Promise.race(running);
      }
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.#note('notCounted', { what: `the bucket could not be listed to its end: ${messageOf(error)}` });
    } finally {
      await Promise.all(running);
    }
  }

  #note(sort: 'bad' | 'notCounted', problem: { key?: string; what: string }): void {
    this.#findings[sort]++;
    if (this.#findings.problems.length < MAX_PROBLEMS) {
      this.#findings.problems.push({ bucket: this.#bucket, ...problem });
    }
  }

  async #object(listed: ListedKey): Promise<void> {
    let object = listed;
    let failure: unknown;
    for (let tries = 0; tries < TRIES; tries++) {
      if (tries > 0) await sleep(this.#options.clock, PAUSE_MS, this.#options.signal);
      failure = await this.#tried(object);
      if (failure === undefined) return;
      const now = await this.#listed(listed.key);
      if (now === undefined) {
        this.#findings.deleted++;
        return;
      }
      object = now;
    }
    const what = messageOf(failure);
    if (codeOf(failure) === 'NOT_FOUND') this.#note('bad', { key: listed.key, what: `it is listed, but: ${what}` });
    else this.#note('notCounted', { key: listed.key, what });
  }

  /** @returns why the object must be looked at again; undefined: it is judged */
  async #tried(object: ListedKey): Promise<unknown> {
    try {
      await this.#prove(object);
      this.#options.onProgress?.(this.#findings);
      return undefined;
    } catch (error) {
      const isAnother = error instanceof Replaced || codeOf(error) === 'NOT_FOUND' || isPassing(error);
      if (this.#options.signal.aborted || !isAnother) throw error;
      return error;
    }
  }

  /** The key as it is listed now; undefined: it is not. */
  async #listed(key: string): Promise<ListedKey | undefined> {
    const page = await this.#options.client.listPage(this.#bucket, { prefix: key, limit: 1 });
    return page.objects.find((object) => object.key === key);
  }

  async #prove(object: ListedKey): Promise<void> {
    const findings = this.#findings;
    const read = await this.#read(object);
    const copies = await this.#copies(object);
    findings.objects++;
    findings.bytes += read.bytes;
    findings.copies += copies.good;
    for (const what of [...read.wrong, ...copies.wrong]) this.#note('bad', { key: object.key, what });
    for (const what of copies.unknown) this.#note('notCounted', { key: object.key, what });
  }

  // ---- as a client ----

  async #read({ key, size, etag }: ListedKey): Promise<{ bytes: number; wrong: string[] }> {
    const [digest = '', parts] = etag.split('-');
    let bytes = 0;
    const whole = createHash('md5');
    if (parts === undefined) bytes += await this.#hash(key, { etag }, (chunk) => whole.update(chunk));
    else {
      for (let number = 1; number <= Number(parts); number++) {
        const part = createHash('md5');
        bytes += await this.#hash(key, { etag, partNumber: String(number) }, (chunk) => part.update(chunk));
        whole.update(part.digest());
      }
    }
    const wrong: string[] = [];
    if (bytes !== size) wrong.push(`${bytes} bytes were read, its size is ${size}`);
    else if (whole.digest('hex') !== digest) wrong.push(`its bytes do not fit its ETag ${etag}`);
    return { bytes, wrong };
  }

  /** @returns how many bytes came */
  async #hash(
    key: string,
    of: { etag: string; partNumber?: string },
    update: (chunk: Uint8Array) => void,
  ): Promise<number> {
    const { client, signal } = this.#options;
    const query = of.partNumber === undefined ? {} : { partNumber: of.partNumber };
    const request = { method: 'GET', bucket: this.#bucket, key, query, signal } as const;
    let bytes = 0;
    try {
      const answer = await client.open({ ...request, headers: { 'if-match': `"${of.etag}"` } });
      for await (const chunk of answer as AsyncIterable<Uint8Array>) {
        update(chunk);
        bytes += chunk.length;
      }
    } catch (error) {
      if (codeOf(error) === 'PRECONDITION_FAILED') throw new Replaced('it changes as fast as it is read');
      if (error instanceof WebdfsError) throw error;
      // the store cuts the connection rather than send a wrong byte
      throw new WebdfsError('UNAVAILABLE', `the answer broke off after ${bytes} bytes`, { cause: error });
    }
    return bytes;
  }

  // ---- at each node ----

  async #copies({ key, etag }: ListedKey): Promise<{ good: number; wrong: string[]; unknown: string[] }> {
    const { client, signal } = this.#options;
    const proof = { good: 0, wrong: [] as string[], unknown: [] as string[] };
    for (let block = 0, isFirst = true; ; isFirst = false) {
      const query = { bucket: this.#bucket, key, block: String(block) };
      const { body } = await client.call({ method: 'GET', bucket: '-', key: 'where', query, signal });
      const report: WhereReport = JSON.parse(body);
      if (report.etag !== etag) throw new Replaced('it changes as fast as it is read');
      // the record stands at the head of every part of the report
      const places = isFirst ? report.places : report.places.slice(1);
      for (const place of places) addPlace(proof, place);
      if (!report.sound && proof.wrong.length + proof.unknown.length === 0) {
        proof.wrong.push('there are fewer copies than there should be, or of different versions');
      }
      const shown = report.places.length - 1;
      block += shown;
      if (block >= report.blocks || shown === 0) return proof;
    }
  }
}

function addPlace(
  proof: { good: number; wrong: string[]; unknown: string[] },
  place: WhereReport['places'][number],
): void {
  for (const copy of place.copies) {
    const where = `${place.what} at node ${copy.node}`;
    if (copy.problem !== undefined) proof.unknown.push(`${where}: ${copy.problem}`);
    else if (!copy.present) proof.wrong.push(`${where}: missing`);
    else if (copy.checksum === 'bad') proof.wrong.push(`${where}: damaged`);
    else proof.good++;
  }
}

function isPassing(error: unknown): boolean {
  return ['UNAVAILABLE', 'BUSY', 'TIMEOUT', 'PEER_LOST', 'NO_QUORUM'].includes(codeOf(error) ?? '');
}
