import { type Clock, type GroupKey, groupNumber, type Sequence } from '@webdfs/base';
import type { LogEntry, Store } from '@webdfs/store';
import { GroupDisk } from './group-disk.ts';

const LOOK_MS = 10;

export interface GroupDisksOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Gets the bytes of a block that was not staged here. */
  readonly obtain: (entry: LogEntry) => Promise<void>;
  readonly durable: (key: GroupKey, upTo: Sequence) => void;
  readonly failed: (error: unknown) => void;
}

/** The groups' ways to the disk: made when they have something to store, forgotten with the group. */
export class GroupDisks {
  readonly #options: GroupDisksOptions;
  readonly #disks = new Map<number, GroupDisk>();

  constructor(options: GroupDisksOptions) {
    this.#options = options;
  }

  has(key: GroupKey): boolean {
    return this.#disks.has(groupNumber(key));
  }

  of(key: GroupKey): GroupDisk {
    const number = groupNumber(key);
    const known = this.#disks.get(number);
    if (known !== undefined) return known;
    const { store, clock, obtain, failed } = this.#options;
    // News of a way that was forgotten is about entries that nobody waits for.
    const durable = (upTo: Sequence): void => {
      if (this.#disks.get(number) === disk) this.#options.durable(key, upTo);
    };
    const disk = new GroupDisk({ store, key, clock, obtain, news: { durable, failed } });
    this.#disks.set(number, disk);
    return disk;
  }

  /** Takes back what the store has not been given. @returns the sequence it begins at, undefined if there is none */
  withdraw(key: GroupKey): Sequence | undefined {
    return this.#disks.get(groupNumber(key))?.withdraw();
  }

  /** Resolves when nothing of the group is on its way any more; the group begins anew then. */
  async quiet(key: GroupKey): Promise<void> {
    const number = groupNumber(key);
    while (this.#disks.get(number)?.isIdle === false) {
      await new Promise<void>((resolve) => void this.#options.clock.after(LOOK_MS, resolve));
    }
    this.#disks.delete(number);
  }
}
