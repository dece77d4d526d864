import { codeOf, type Disk, fromUtf8 } from '@webdfs/base';
import type { ProcessMark } from './map.ts';

/** The seam to the system's processes: who am I, and is that one gone. */
export interface ProcessTable {
  own(): Promise<ProcessMark>;
  /** True only if the process surely does not run any more. */
  gone(mark: ProcessMark): Promise<boolean>;
}

export interface ProcessOptions {
  readonly exists?: (pid: number) => boolean;
  /**
   * Only processes of this machine are asked about, so one of another boot ran before it. Else it may run on another machine
   * now, and nothing is known of it. Default: true.
   */
  readonly alone?: boolean;
}

/** Whether a signal could be sent to a process, without sending one. */
function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * Processes as Linux shows them under `/proc`: one is known by its id, the tick it started at, and the boot. Where there is
 * no `/proc`, by its id alone, so a process is never thought gone while some process has its id.
 */
export class SystemProcesses implements ProcessTable {
  readonly #disk: Disk;
  readonly #exists: (pid: number) => boolean;
  readonly #alone: boolean;

  constructor(disk: Disk, options: ProcessOptions = {}) {
    this.#disk = disk;
    this.#exists = options.exists ?? exists;
    this.#alone = options.alone ?? true;
  }

  async own(): Promise<ProcessMark> {
    return { pid: process.pid, start: (await this.#stat(process.pid))?.start ?? '', boot: await this.#boot() };
  }

  async gone(mark: ProcessMark): Promise<boolean> {
    const boot = await this.#boot();
    if (!this.#alone && (boot === '' || mark.boot !== boot)) return false;
    if (mark.boot !== '' && boot !== '' && mark.boot !== boot) return true;
    if (!this.#exists(mark.pid)) return true;
    const stat = await this.#stat(mark.pid);
    if (stat === undefined || mark.start === '') return false;
    // a zombie has ended, though its parent has not asked how
    return stat.start !== mark.start || stat.state === 'Z' || stat.state === 'X';
  }

  /** Fields 3 and 22 of proc_pid_stat(5); the name before them may contain anything, but ends with the last bracket. */
  async #stat(pid: number): Promise<{ state: string; start: string } | undefined> {
    const text = await this.#read(`/proc/${pid}/stat`);
    if (text === undefined) return undefined;
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', start: fields[19] ?? '' };
  }

  async #boot(): Promise<string> {
    return (await this.#read('/proc/sys/kernel/random/boot_id'))?.trim() ?? '';
  }

  /** Files under /proc say that they are empty, so they are read until they end. */
  async #read(path: string): Promise<string | undefined> {
    try {
      const file = await this.#disk.open(path, 'read');
      try {
        const bytes = new Uint8Array(4096);
        return fromUtf8(bytes.subarray(0, await file.read(bytes, 0)));
      } finally {
        await file.close();
      }
    } catch (error) {
      // ESRCH: it ended between open and read
      if (codeOf(error) === 'NOT_FOUND' || codeOf(error) === 'DISK_FAILED') return undefined;
      throw error;
    }
  }
}
