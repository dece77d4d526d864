import { codeOf, equalBytes, type ErrorCode, messageOf, type SeededRandom, utf8, WebdfsError } from '@webdfs/base';
import type { GetOptions, GetResult, ObjectLayer, PutConditions } from '@webdfs/client';
import type { Action, Asked, HistoryRecorder } from '@webdfs/history';
import type { Life } from './machine.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';
import type { Value, ValueBook } from './value-book.ts';

export const BUCKET = 'simulated';
export const KEYS: readonly string[] = ['a', 'b/1', 'b/2', 'c', 'd/x/y', 'e'];
const FACTS = { facts: { headers: {}, user: {} } };
const PATIENCE_MS = 25_000;

/** What clients do, in shares. */
export interface Mix {
  readonly read: number;
  readonly list: number;
  readonly put: number;
  readonly create: number;
  readonly swap: number;
  readonly remove: number;
  readonly upload: number;
  /** Of bytes: some fit in their record, some take several blocks. */
  readonly large: number;
  readonly thinkMs: number;
}

/** Somebody was told what must not be told: the run has failed. */
export class Violation extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'Violation';
  }
}

/** Refusals that tell for sure that a condition did not hold. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set(['PRECONDITION_FAILED', 'NOT_FOUND']);
/** What clients may be told while the world is bad: nobody knows what became of it. */
const TROUBLES: ReadonlySet<ErrorCode> = new Set([
  'UNAVAILABLE',
  'NO_QUORUM',
  'BUSY',
  'DISK_FULL',
  'DISK_FAILED',
  'FENCED',
  'CORRUPT',
  'TIMEOUT',
  'PEER_LOST',
]);

class Gone extends Error {}

export interface ClientSeams {
  readonly id: number;
  readonly cluster: SimulatedCluster;
  readonly history: HistoryRecorder;
  readonly book: ValueBook;
  readonly random: SeededRandom;
  readonly mix: Mix;
}

/** A client with one operation at a time, each through a node that runs; it writes down what it asked and was told. */
export class SimulatedClient {
  readonly #seams: ClientSeams;
  /** ETags that it has seen, for swaps. */
  readonly #seen = new Map<string, string>();
  readonly counts: Record<string, number> = {};
  #stopped = false;

  constructor(seams: ClientSeams) {
    this.#seams = seams;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Works until it is stopped. @throws Violation */
  async work(): Promise<void> {
    const { random, mix } = this.#seams;
    while (!this.#stopped) {
      await this.#sleep(random.fraction() * mix.thinkMs);
      const life = this.#aLife();
      if (life !== undefined && !this.#stopped) await this.#act(life);
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#seams.cluster.clock.after(ms, resolve));
  }

  #aLife(): Life | undefined {
    const lives = this.#seams.cluster.machines.flatMap(({ life }) => (life === undefined ? [] : [life]));
    return lives[this.#seams.random.below(lives.length)];
  }

  async #act(life: Life): Promise<void> {
    const { random, mix } = this.#seams;
    const { thinkMs: _, large: __, ...shares } = mix;
    const total = Object.values(shares).reduce((sum, share) => sum + share, 0);
    let dice = random.fraction() * total;
    const kind = (Object.entries(shares) as [keyof typeof shares, number][]).find(([, share]) => (dice -= share) < 0);
    const key = KEYS[random.below(KEYS.length)]!;
    switch (kind?.[0] ?? 'read') {
      case 'read':
        return await this.read(life, key, random.below(3) === 0);
      case 'list':
        return await this.list(life);
      case 'put':
        return await this.#put(life, key, {});
      case 'create':
        return await this.#put(life, key, { ifNoneMatch: ['*'] });
      case 'swap':
        return await this.#put(life, key, { ifMatch: [this.#seen.get(key) ?? 'nothing'] });
      case 'remove':
        return await this.#remove(life, key);
      case 'upload':
        return await this.#upload(life, key);
    }
  }

  /** Runs work of a node's process as that process, until it answers, dies, or takes too long. */
  async #ask<T>(life: Life, work: (objects: ObjectLayer) => Promise<T>): Promise<T> {
    const { cluster } = this.#seams;
    const answer = new Promise<T>((resolve, reject) => {
      life.clock.soon(() => void work(life.objects).then(resolve, reject));
    });
    const gone = life.ended.then((): never => {
      throw new Gone();
    });
    const patience = Promise.withResolvers<never>();
    const timer = cluster.clock.after(PATIENCE_MS, () => patience.reject(new Gone()));
    for (const each of [answer, gone, patience.promise]) each.catch(() => undefined);
    try {
      return await Promise.race([answer, gone, patience.promise]);
    } finally {
      timer.cancel();
    }
  }

  /** What an error tells: a condition that did not hold, or nothing. @throws Violation for what no client may be told */
  #told(error: unknown, what: string): 'refused' | 'nothing' {
    if (error instanceof Gone) return 'nothing';
    const code = codeOf(error);
    this.#count(`${what} ${code ?? 'broken'}`);
    if (code === undefined) throw error;
    if (error instanceof WebdfsError && error.details['what'] === 'bucket') throw new Violation('the bucket is gone');
    if (REFUSALS.has(code)) return 'refused';
    if (TROUBLES.has(code)) return 'nothing';
    throw new Violation(`${what} was answered ${code}: ${messageOf(error)}`);
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  #say(life: Life, line: string): void {
    const { id, cluster } = this.#seams;
    cluster.time.noteText(line);
    cluster.tell(`client ${id} at node ${life.storage.node}: ${line}`);
  }

  // ---- reading ----

  async read(life: Life, key: string, isPart: boolean): Promise<void> {
    const { history, id, random } = this.#seams;
    const asked = history.ask(id, key, { type: 'read' });
    const first = isPart ? random.below(3_000) : 0;
    const range: GetOptions = isPart ? { range: { type: 'from', first, last: first + random.below(2_000) } } : {};
    try {
      const found = await this.#ask(life, (objects) => objects.get(BUCKET, utf8(key), range));
      const value = this.#valueOf(found.info.etag, key);
      asked.answered({ type: 'read', value: value.name });
      this.#seen.set(key, value.etag);
      this.#count('read');
      this.#say(life, `read ${key}: ${value.name}`);
      await this.#checkBytes(life, found, value);
    } catch (error) {
      if (codeOf(error) === 'NOT_FOUND') {
        asked.answered({ type: 'read', value: undefined });
        this.#say(life, `read ${key}: nothing there`);
      } else asked.unknown();
      if (error instanceof Violation) throw error;
      // a range beyond the end tells nothing more
      if (codeOf(error) !== 'RANGE_NOT_SATISFIABLE') this.#told(error, 'read');
    }
  }

  #valueOf(etag: string, key: string): Value {
    const value = this.#seams.book.find(etag);
    if (value === undefined) throw new Violation(`${key} has ETag ${etag}, which nobody wrote`);
    return value;
  }

  /** No byte that is shown may be another than was written (P12). */
  async #checkBytes(life: Life, found: GetResult, value: Value): Promise<void> {
    const { info, offset, length, body } = found;
    if (info.size !== value.bytes.length) throw new Violation(`${value.name} has ${info.size} bytes`);
    const parts: Uint8Array[] = [];
    if (body instanceof Uint8Array) parts.push(body);
    else {
      await this.#ask(life, async () => {
        for await (const piece of body) {
          parts.push(piece.bytes.slice());
          piece.release();
        }
      });
    }
    const shown = new Uint8Array(Buffer.concat(parts));
    if (!equalBytes(shown, value.bytes.subarray(offset, offset + length))) {
      throw new Violation(`${value.name} shows other bytes than were written, from ${offset}, ${length} bytes`);
    }
  }

  async list(life: Life): Promise<void> {
    const { history, id, random } = this.#seams;
    const asked = history.askListing(id);
    const limit = random.below(4) === 0 ? 2 : 1_000;
    try {
      const { objects, next } = await this.#ask(life, (layer) => layer.list(BUCKET, { limit }));
      const names = objects.map(({ key }) => new TextDecoder().decode(key));
      const last = next === undefined ? undefined : new TextDecoder().decode(next);
      const listed = new Map(objects.map(({ etag }, i) => [names[i]!, this.#valueOf(etag, names[i]!).name]));
      if (names.toSorted().join() !== names.join() || listed.size !== names.length) {
        throw new Violation(`a listing is out of order: ${names.join()}`);
      }
      asked.answered(
        KEYS.filter((key) => last === undefined || key <= last),
        listed,
      );
      this.#count('list');
      this.#say(life, `list: ${[...listed].map((each) => each.join('=')).join(' ')}`);
    } catch (error) {
      if (error instanceof Violation) throw error;
      this.#told(error, 'list');
    }
  }

  // ---- writing ----

  async #put(life: Life, key: string, conditions: PutConditions): Promise<void> {
    const { book, random, mix } = this.#seams;
    const size = random.fraction() < mix.large ? 300 + random.below(4_000) : 20 + random.below(200);
    const value = book.whole(size);
    await this.#write(life, key, { value, conditions }, (objects) => {
      const options = { ...FACTS, size, ...(Object.keys(conditions).length > 0 && { conditions }) };
      return objects.put(BUCKET, utf8(key), value.bytes, options);
    });
  }

  #actionOf(value: Value | undefined, conditions: PutConditions): Action {
    const expected = conditions.ifMatch?.[0];
    const condition =
      conditions.ifNoneMatch !== undefined
        ? ({ type: 'absent' } as const)
        : expected === undefined
          ? undefined
          : ({ type: 'is', value: this.#seams.book.find(expected)?.name ?? 'nothing' } as const);
    const rest = condition === undefined ? {} : { condition };
    return value === undefined ? { type: 'delete', ...rest } : { type: 'write', value: value.name, ...rest };
  }

  async #write(
    life: Life,
    key: string,
    what: { value: Value | undefined; conditions: PutConditions },
    work: (objects: ObjectLayer) => Promise<unknown>,
  ): Promise<boolean> {
    const { history, id } = this.#seams;
    const { value, conditions } = what;
    const action = this.#actionOf(value, conditions);
    const words = `${action.type} ${key}${value === undefined ? '' : ` ${value.name}`} ${JSON.stringify(conditions)}`;
    const asked = history.ask(id, key, action);
    try {
      await this.#ask(life, work);
      return this.#finish(asked, { type: 'done' }, { life, key, words, value });
    } catch (error) {
      const isConditional = Object.keys(conditions).length > 0;
      if (this.#told(error, action.type) === 'refused' && isConditional) {
        this.#finish(asked, { type: 'refused' }, { life, key, words, value });
      } else {
        asked.unknown();
        this.#say(life, `${words}: ${codeOf(error) ?? 'no answer'}`);
      }
      return false;
    }
  }

  #finish(
    asked: Asked,
    result: { readonly type: 'done' | 'refused' },
    about: { life: Life; key: string; words: string; value: Value | undefined },
  ): boolean {
    asked.answered(result);
    if (result.type === 'done' && about.value !== undefined) this.#seen.set(about.key, about.value.etag);
    this.#count(result.type);
    this.#say(about.life, `${about.words}: ${result.type}`);
    return result.type === 'done';
  }

  async #remove(life: Life, key: string): Promise<void> {
    await this.#write(life, key, { value: undefined, conditions: {} }, (objects) => objects.remove(BUCKET, utf8(key)));
  }

  /** An upload in parts; only its completion writes. Some are given up, some are left open, as users do. */
  async #upload(life: Life, key: string): Promise<void> {
    const { book, random } = this.#seams;
    const sizes = Array.from({ length: 1 + random.below(3) }, () => 100 + random.below(2_500));
    const value = book.inParts(sizes);
    const target = utf8(key);
    try {
      const { uploadId } = await this.#ask(life, (objects) => objects.createUpload(BUCKET, target, FACTS));
      const parts: { number: number; etag: string }[] = [];
      for (const [i, bytes] of value.parts.entries()) {
        const part = { uploadId, number: i + 1 };
        const { etag } = await this.#ask(life, (objects) => objects.putPart(BUCKET, target, part, bytes, {}));
        parts.push({ number: part.number, etag });
      }
      const fate = random.below(8);
      if (fate === 0) return;
      if (fate === 1) return await this.#ask(life, (objects) => objects.abortUpload(BUCKET, target, uploadId));
      await this.#write(life, key, { value, conditions: {} }, (objects) =>
        objects.completeUpload(BUCKET, target, uploadId, { parts }),
      );
      this.#count('upload');
    } catch (error) {
      if (error instanceof Violation) throw error;
      this.#told(error, 'upload');
    }
  }
}
