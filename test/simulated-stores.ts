import { type NodeId, SeededRandom, silentLog, systemClock } from '@webdfs/base';
import { SimulatedDisk } from '@webdfs/base/testing';
import { MemoryLock, openStore, type RowIndex, type RowIndexHouse, SortedIndexHouse, type Store } from '@webdfs/store';
import type { StoreHouse } from './cluster-in-process.ts';

/** Real stores on disks in memory; a killed node finds what its disk had when it begins again. */
export class SimulatedStores implements StoreHouse {
  readonly disks = new Map<NodeId, SimulatedDisk>();
  /** The indexes as they are below the stores that run. */
  readonly indexes = new Map<NodeId, RowIndex>();
  readonly #locks = new Map<NodeId, MemoryLock>();
  readonly #seed: number;
  #lives = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  async open(node: NodeId): Promise<Store> {
    const disk = this.disks.get(node) ?? new SimulatedDisk({ seed: this.#seed + Number(node) });
    this.disks.set(node, disk);
    const lock = this.#locks.get(node) ?? new MemoryLock();
    this.#locks.set(node, lock);
    const random = new SeededRandom(this.#seed * 31 + Number(node) + 1_000 * this.#lives++);
    return await openStore({
      disk,
      index: this.#watched(node, new SortedIndexHouse({ disk, random })),
      folder: '/data',
      identity: { node: Number(node), cluster: '0'.repeat(32) },
      clock: systemClock,
      random,
      log: silentLog,
      lock,
      options: { maxVolumeBytes: 4 * 1024 * 1024, ballast: false, reserveBytes: 0 },
    });
  }

  #watched(node: NodeId, house: RowIndexHouse): RowIndexHouse {
    return {
      open: async (path) => {
        const index = await house.open(path);
        this.indexes.set(node, index);
        return index;
      },
      remove: (path) => house.remove(path),
      rename: (source, target) => house.rename(source, target),
    };
  }

  async crash(node: NodeId): Promise<void> {
    this.disks.set(node, this.disks.get(node)!.crash('kill'));
    this.#locks.get(node)!.breakAll();
  }

  /** The disk is replaced by an empty one. */
  wipe(node: NodeId): void {
    this.disks.delete(node);
  }
}
