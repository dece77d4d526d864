import { type Clock, codeOf, SeededRandom, sleep, WebdfsError } from '@webdfs/base';
import { nameOf, valueBytes, valueName } from './check-values.ts';
import type { Action, Condition, Operation } from './operation.ts';
import { HistoryRecorder } from './recorder.ts';

/** A store as a workload sees it. A tag names a value to the store, as an ETag does; it differs where the bytes differ. */
export interface Subject {
  /** Undefined: nothing there. */
  read(key: string): Promise<{ readonly bytes: Uint8Array; readonly tag: string } | undefined>;
  /** The tag of what was written; undefined: the condition did not hold. */
  write(
    key: string,
    bytes: Uint8Array,
    condition: 'absent' | { readonly tag: string } | undefined,
  ): Promise<string | undefined>;
  remove(key: string): Promise<void>;
  /** All keys with their tags. */
  list(): Promise<ReadonlyMap<string, string>>;
}

export interface WorkloadOptions {
  /** Clients are spread over these: ways to one and the same store. */
  readonly subjects: readonly Subject[];
  readonly clients: number;
  readonly keys: readonly string[];
  /** Bytes of a value, from and to. */
  readonly sizes: readonly [number, number];
  readonly durationMs: number;
  /** Mean pause of a client between two operations. */
  readonly thinkMs: number;
  /** False: no conditional writes. */
  readonly conditions: boolean;
  readonly seed: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Awaited when the clients have stopped, before the last reads: whoever makes trouble is to stop. */
  readonly whenWorkEnds?: () => Promise<void>;
}

/** What a client met that no order of operations explains. */
export interface Oddity {
  readonly key: string;
  readonly what: string;
}

export interface RecordedWorkload {
  readonly operations: readonly Operation[];
  /** Bytes that nobody wrote. */
  readonly odd: readonly Oddity[];
  /** Errors by their code. */
  readonly errors: Readonly<Record<string, number>>;
  /** The longest time in which no operation of any client was answered, ms. */
  readonly longestPauseMs: number;
}

/** How long the last reads are tried when the store does not answer. */
const PATIENCE_MS = 60_000;
const RETRY_MS = 200;
const MAX_ODD = 100;

/** Whether nobody knows what became of an operation that failed so; other errors say that the workload cannot be run here. */
function leavesUnknown(error: unknown): boolean {
  const code = codeOf(error);
  if (!(error instanceof WebdfsError) || code === undefined) return false;
  return error.remedy === 'retry' || code === 'DISK_FULL' || code === 'CANCELLED' || code === 'INCOMPLETE_BODY';
}

class Workload {
  readonly #options: WorkloadOptions;
  readonly #random: SeededRandom;
  readonly #history: HistoryRecorder;
  /** Names of values by their tags. */
  readonly #names = new Map<string, string>();
  /** The tag that was seen last, by key. */
  readonly #seen = new Map<string, string>();
  readonly #odd: Oddity[] = [];
  readonly #errors: Record<string, number> = {};
  #values = 0;
  #answeredAt: number;
  #longestPauseMs = 0;

  constructor(options: WorkloadOptions) {
    const { clock } = options;
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    const began = clock.monotonic();
    this.#history = new HistoryRecorder(() => clock.monotonic() - began);
    this.#answeredAt = clock.monotonic();
  }

  async run(): Promise<RecordedWorkload> {
    const { clients, subjects, clock, durationMs, signal } = this.#options;
    const until = clock.monotonic() + durationMs;
    const work = Array.from({ length: clients }, async (_, client) => {
      const subject = subjects[client % subjects.length]!;
      while (clock.monotonic() < until && !signal.aborted) await this.#act(client, subject);
    });
    await Promise.all(work);
    await this.#options.whenWorkEnds?.();
    if (!signal.aborted) await this.#lastReads(clients);
    const operations = this.#history.operations();
    return { operations, odd: this.#odd, errors: this.#errors, longestPauseMs: this.#longestPauseMs };
  }

  async #act(client: number, subject: Subject): Promise<void> {
    const { keys, thinkMs, conditions, clock, signal } = this.#options;
    await sleep(clock, 2 * thinkMs * this.#random.fraction(), signal).catch(() => undefined);
    if (signal.aborted) return;
    const key = keys[this.#random.below(keys.length)]!;
    const dice = this.#random.below(100);
    if (dice < 45) return void (await this.#read(client, subject, key));
    if (dice < 50) return void (await this.#list(client, subject));
    if (dice < 58) return await this.#remove(client, subject, key);
    const tag = this.#seen.get(key);
    if (dice < 66 && conditions) return await this.#write(client, subject, key, 'absent');
    if (dice < 80 && conditions && tag !== undefined) return await this.#write(client, subject, key, { tag });
    return await this.#write(client, subject, key, undefined);
  }

  #answered(): void {
    const now = this.#options.clock.monotonic();
    this.#longestPauseMs = Math.max(this.#longestPauseMs, now - this.#answeredAt);
    this.#answeredAt = now;
  }

  /** @throws what is no trouble of a store, but of this workload with it */
  #failed(error: unknown): void {
    if (!leavesUnknown(error)) throw error;
    const code = codeOf(error)!;
    this.#errors[code] = (this.#errors[code] ?? 0) + 1;
  }

  #oddity(key: string, what: string): void {
    if (this.#odd.length < MAX_ODD) this.#odd.push({ key, what });
  }

  /** False: the store did not answer. */
  async #read(client: number, subject: Subject, key: string): Promise<boolean> {
    const asked = this.#history.ask(client, key, { type: 'read' });
    try {
      const found = await subject.read(key);
      this.#answered();
      const value = found === undefined ? undefined : valueName(found.bytes);
      if (found !== undefined && value === undefined) {
        asked.unknown();
        this.#oddity(key, `${found.bytes.length} bytes (tag ${found.tag}) that nobody wrote`);
        return true;
      }
      asked.answered({ type: 'read', value });
      if (found !== undefined) this.#learn(key, found.tag, value!);
      return true;
    } catch (error) {
      asked.unknown();
      this.#failed(error);
      return false;
    }
  }

  #learn(key: string, tag: string, name: string): void {
    this.#names.set(tag, name);
    this.#seen.set(key, tag);
  }

  async #list(client: number, subject: Subject): Promise<boolean> {
    const asked = this.#history.askListing(client);
    try {
      const tags = await subject.list();
      this.#answered();
      const listed = new Map<string, string>();
      // of a tag that nobody was told of yet (its writer was not answered) the listing says nothing that can be checked
      const covered = this.#options.keys.filter((key) => {
        const tag = tags.get(key);
        const name = tag === undefined ? undefined : this.#names.get(tag);
        if (name !== undefined) listed.set(key, name);
        return tag === undefined || name !== undefined;
      });
      asked.answered(covered, listed);
      return true;
    } catch (error) {
      this.#failed(error);
      return false;
    }
  }

  async #remove(client: number, subject: Subject, key: string): Promise<void> {
    const asked = this.#history.ask(client, key, { type: 'delete' });
    try {
      await subject.remove(key);
      this.#answered();
      asked.answered({ type: 'done' });
    } catch (error) {
      asked.unknown();
      this.#failed(error);
    }
  }

  async #write(
    client: number,
    subject: Subject,
    key: string,
    condition: 'absent' | { readonly tag: string } | undefined,
  ): Promise<void> {
    const { sizes } = this.#options;
    const number = ++this.#values;
    const bytes = valueBytes(number, sizes[0] + this.#random.below(sizes[1] - sizes[0] + 1));
    const action: Action = { type: 'write', value: nameOf(number), ...this.#conditionOf(condition) };
    const asked = this.#history.ask(client, key, action);
    try {
      const tag = await subject.write(key, bytes, condition);
      this.#answered();
      asked.answered({ type: tag === undefined ? 'refused' : 'done' });
      if (tag !== undefined) this.#learn(key, tag, nameOf(number));
    } catch (error) {
      asked.unknown();
      this.#failed(error);
    }
  }

  #conditionOf(condition: 'absent' | { readonly tag: string } | undefined): { condition?: Condition } {
    if (condition === undefined) return {};
    if (condition === 'absent') return { condition: { type: 'absent' } };
    return { condition: { type: 'is', value: this.#names.get(condition.tag)! } };
  }

  /** Every key once more, and a listing: what was acknowledged and is lost would else not be noticed. */
  async #lastReads(client: number): Promise<void> {
    const { keys, subjects, clock } = this.#options;
    const until = clock.monotonic() + PATIENCE_MS;
    for (const subject of subjects) {
      const reads = keys.map((key) => () => this.#read(client, subject, key));
      for (const read of [...reads, () => this.#list(client, subject)]) {
        while (!(await read())) {
          if (clock.monotonic() > until) {
            throw new WebdfsError(
              'UNAVAILABLE',
              `the store did not answer for ${PATIENCE_MS / 1_000} s when all was over`,
            );
          }
          await sleep(clock, RETRY_MS);
        }
      }
    }
  }
}

/**
 * Runs clients against a store and writes down what they asked and were told: reads, writes, conditional writes, deletes and
 * listings of few keys, so that operations meet. The store's own troubles are part of the history.
 *
 * @throws what says that the workload cannot be run here (ACCESS_DENIED, NOT_FOUND, …); UNAVAILABLE if the store does not
 * answer when all is over
 */
export async function recordWorkload(options: WorkloadOptions): Promise<RecordedWorkload> {
  return await new Workload(options).run();
}
