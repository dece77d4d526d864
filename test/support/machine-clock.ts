import { existsSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';

/**
 * The wall clock of one machine, as its processes see it: libfaketime stands between them and the system and adds what a
 * file says. Only the wall clock: the monotonic one is what the kernel says, as when somebody sets the time.
 */

const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';

/** Why clocks cannot be moved here, if they cannot. */
export function clocksMissing(): string | false {
  return existsSync(LIBRARY) ? false : 'libfaketime is not installed (Debian: libfaketime)';
}

export class MachineClock {
  readonly #file: string;

  private constructor(file: string) {
    this.#file = file;
  }

  static async create(file: string): Promise<MachineClock> {
    const clock = new MachineClock(file);
    await clock.jump(0);
    return clock;
  }

  /** For processes that are to go by this clock. */
  get environment(): Record<string, string> {
    return {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // how soon they notice, seconds
      FAKETIME_CACHE_DURATION: '1',
    };
  }

  /** Sets it so many seconds ahead of the true time, or behind it. */
  async jump(seconds: number): Promise<void> {
    await writeFile(`${this.#file}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    await rename(`${this.#file}.new`, this.#file);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#file, { force: true });
  }
}
