import { assert, type Ballot, type Clock, codeOf, equalBytes, type GroupKey, type Sequence } from '@webdfs/base';
import { KIND, type LogEntry, type Store } from '@webdfs/store';
import { packBlockBody } from './block-entry.ts';

/** Between tries to store what the disk refused. */
const AGAIN_MS = 500;

export interface DiskNews {
  /** Everything up to here is durable; called again after a cut is. */
  durable(upTo: Sequence): void;
  /** The disk has failed for good: the node must stop. */
  failed(error: unknown): void;
}

interface Given {
  readonly entry: LogEntry | undefined;
  readonly sequence: Sequence;
  isDone: boolean;
}

/**
 * One group's way to the disk: entries reach the store in their order, a block's entry only once its bytes are here, and
 * what is durable is reported without gaps. Several entries may be with the store at once: it commits them together.
 */
export class GroupDisk {
  readonly #store: Pick<Store, 'append' | 'cut' | 'staged'>;
  readonly #key: GroupKey;
  readonly #clock: Clock;
  readonly #obtain: (entry: LogEntry) => Promise<void>;
  readonly #news: DiskNews;
  /** With the store, in order. */
  #given: Given[] = [];
  /** Not with the store yet: behind a block whose bytes are missing, or behind one that was refused. */
  #waiting: LogEntry[] = [];
  #isObtaining = false;
  #isPaused = false;
  /** Raised by `withdraw`: answers to earlier questions no longer count. */
  #era = 0;

  /** @param obtain  gets a block's bytes from another member; rejects if it cannot now */
  constructor(options: {
    store: Pick<Store, 'append' | 'cut' | 'staged'>;
    key: GroupKey;
    clock: Clock;
    obtain: (entry: LogEntry) => Promise<void>;
    news: DiskNews;
  }) {
    this.#store = options.store;
    this.#key = options.key;
    this.#clock = options.clock;
    this.#obtain = options.obtain;
    this.#news = options.news;
  }

  get isIdle(): boolean {
    return this.#given.length === 0 && this.#waiting.length === 0;
  }

  append(entry: LogEntry): void {
    if (this.#waiting.length > 0 || this.#isPaused || this.#lacksBytes(entry)) {
      this.#waiting.push(entry);
      this.#pump();
    } else this.#give(entry);
  }

  /** Voids entries after `after` of ballots below `below`; reported durable up to `after` once that is on the disk. */
  cut(after: Sequence, below: Ballot): void {
    assert(this.#waiting.length === 0, 'a log is cut only when it is quiet');
    this.#given = this.#given.filter((given) => given.sequence <= after);
    const given: Given = { entry: undefined, sequence: after, isDone: false };
    this.#given.push(given);
    void this.#store.cut(this.#key, after, below).then(
      () => this.#done(given),
      (error: unknown) => this.#news.failed(error),
    );
  }

  /** Takes back what the store has not been given. @returns the sequence it begins at, undefined if there is none */
  withdraw(): Sequence | undefined {
    const first = this.#waiting[0]?.sequence;
    this.#waiting = [];
    this.#era++;
    this.#isObtaining = false;
    this.#isPaused = false;
    return first;
  }

  #lacksBytes(entry: LogEntry): boolean {
    if (entry.kind !== KIND.BLOCK) return false;
    const staged = this.#store.staged(entry.key);
    return staged === undefined || !equalBytes(packBlockBody(staged.size, staged.sums), entry.body);
  }

  #give(entry: LogEntry): void {
    const given: Given = { entry, sequence: entry.sequence, isDone: false };
    this.#given.push(given);
    void this.#store.append(entry).then(
      () => this.#done(given),
      (error: unknown) => this.#refused(given, error),
    );
  }

  #done(given: Given): void {
    given.isDone = true;
    let upTo = -1;
    while (this.#given.length > 0 && this.#given[0]!.isDone) upTo = this.#given.shift()!.sequence;
    if (upTo >= 0) this.#news.durable(upTo);
  }

  /** Nothing was stored. This entry and those behind it are offered again, in their order. */
  #refused(given: Given, error: unknown): void {
    const at = this.#given.indexOf(given);
    if (at < 0) return;
    const code = codeOf(error);
    const isPassing = code === 'DISK_FULL' || code === 'BUSY' || code === 'NOT_FOUND' || code === 'CHECKSUM_MISMATCH';
    if (!isPassing) return this.#news.failed(error);
    const back = this.#given.splice(at).flatMap(({ entry }) => (entry === undefined ? [] : [entry]));
    this.#waiting.unshift(...back);
    this.#pause();
  }

  #pause(): void {
    this.#isPaused = true;
    const era = this.#era;
    this.#clock.after(AGAIN_MS, () => {
      if (era !== this.#era) return;
      this.#isPaused = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#waiting.length > 0 && !this.#isPaused && !this.#isObtaining) {
      const entry = this.#waiting[0]!;
      if (this.#lacksBytes(entry)) return this.#fetchBytes(entry);
      this.#waiting.shift();
      this.#give(entry);
    }
  }

  #fetchBytes(entry: LogEntry): void {
    this.#isObtaining = true;
    const era = this.#era;
    const settled = (isHere: boolean): void => {
      if (era !== this.#era) return;
      this.#isObtaining = false;
      if (isHere && !this.#lacksBytes(entry)) this.#pump();
      else this.#pause();
    };
    void this.#obtain(entry).then(
      () => settled(true),
      () => settled(false),
    );
  }
}
