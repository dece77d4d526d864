import type { Clock, Disk, Log, NodeId, Random, Revision } from '@webdfs/base';
import { liveKey } from './keys.ts';
import { CoreHandle } from './core-handle.ts';
import { MapCore } from './map-core.ts';
import { MapFolder } from './map-folder.ts';
import type { MapStore, Write } from './map-store.ts';
import { OwnerLock } from './owner-lock.ts';
import type { ProcessTable } from './process-table.ts';

export interface EmbeddedMapOptions {
  readonly disk: Disk;
  /** Its own: `map` in the data folder. */
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly processes: ProcessTable;
  /** When the log is replaced by a snapshot; 4 MiB. */
  readonly logBytes?: number;
  /** How much is kept for watchers that were away; 4 096 changes, 8 MiB. */
  readonly history?: { readonly changes?: number; readonly bytes?: number };
}

/** Whoever holds leases as a process with this id. */
export function processHolder(pid: number): string {
  return `process ${pid}`;
}

/**
 * The map store of one machine, owned by the supervisor: one owner gives order, push and proof of death. Its writes are on
 * stable storage before anyone sees them; its leases are in memory, on its clock, and a new owner begins without sessions.
 */
export class EmbeddedMapOwner implements AsyncDisposable {
  /** What `serveMapStore` serves. */
  readonly core: MapCore;
  readonly disk: Disk;
  readonly #folder: MapFolder;
  readonly #lock: OwnerLock;
  #connections = 0;

  private constructor(core: MapCore, disk: Disk, folder: MapFolder, lock: OwnerLock) {
    this.core = core;
    this.disk = disk;
    this.#folder = folder;
    this.#lock = lock;
  }

  /** @throws LOCKED if another process owns the folder, CORRUPT, NEWER_FORMAT, DISK_FULL, DISK_FAILED */
  static async open(options: EmbeddedMapOptions): Promise<EmbeddedMapOwner> {
    const lock = await OwnerLock.take(options.disk, options.folder, options.processes);
    const folder = new MapFolder(options);
    try {
      const core: MapCore = new MapCore({
        clock: options.clock,
        random: options.random,
        ...(options.history === undefined ? {} : { history: options.history }),
        persist: (revision: Revision, writes: readonly Write[]) => folder.append(core.space, revision, writes),
      });
      await folder.load(core.space);
      core.history.restart(core.space.revision);
      await core.endUnleased();
      return new EmbeddedMapOwner(core, options.disk, folder, lock);
    } catch (error) {
      await folder[Symbol.asyncDispose]();
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** A way to the store for a party in this process; its leases end with time, or by their holder. */
  connect(): MapStore {
    this.#connections++;
    return new CoreHandle(this.core, `connection ${this.#connections}`);
  }

  /** Ends the session of a node, and all leases of its process: the kernel said that it has exited. */
  async endSession(node: NodeId): Promise<void> {
    const holder = this.core.holderOf(liveKey(node));
    if (holder !== undefined) await this.core.endHolder(holder);
  }

  /** Ends all leases of a process that has exited, registered as a node or not. */
  async endProcess(pid: number): Promise<void> {
    await this.core.endHolder(processHolder(pid));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.core.close();
    await this.#folder[Symbol.asyncDispose]();
    await this.#lock[Symbol.asyncDispose]();
  }
}
