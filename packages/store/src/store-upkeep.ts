import { type Clock, type Disk, type Log, utf8 } from '@webdfs/base';
import type { Core } from './core.ts';
import type { DamageTable } from './damage-table.ts';
import type { FullDisk } from './full-disk.ts';
import type { GroupTable } from './group-table.ts';
import type { Overlay } from './overlay.ts';
import type { Pointers } from './pointers.ts';
import type { Residency } from './residency.ts';
import type { StagedTable } from './staged-table.ts';
import { metaRowKey, volumeRowKey } from './state-rows.ts';
import type { Upkeep } from './upkeep.ts';
import type { Volume, VolumeTable } from './volume-table.ts';

/** The open store as compaction and scrub see it. */
export class StoreUpkeep implements Upkeep {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly volumes: VolumeTable;
  readonly groups: GroupTable;
  readonly staged: StagedTable;
  readonly damage: DamageTable;
  readonly overlay: Overlay;
  readonly pointers: Pointers;
  readonly residency: Residency;
  readonly #core: Core;
  readonly #space: FullDisk;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: { core: Core; disk: Disk; log: Log; space: FullDisk }) {
    const { core } = options;
    this.#core = core;
    this.#space = options.space;
    this.disk = options.disk;
    this.log = options.log;
    this.clock = core.tables.clock;
    this.volumes = core.tables.volumes;
    this.groups = core.tables.groups;
    this.staged = core.tables.staged;
    this.damage = core.tables.damage;
    this.overlay = core.tables.overlay;
    this.pointers = core.pointers;
    this.residency = core.residency;
  }

  blocked(volume: Volume): 'open' | 'pending' | 'damage' | undefined {
    if (volume.state !== 'sealed') return 'open';
    if (this.damage.isDamaged(volume.id)) return 'damage';
    for (const group of this.groups.all()) {
      if (group.holds(volume.id)) return 'pending';
    }
    return undefined;
  }

  async retire(volume: Volume): Promise<void> {
    await this.#core.logs.proveCommits();
    volume.state = 'gone';
    this.volumes.touch(volume);
    this.damage.forgetVolume(volume.id);
    this.overlay.put(metaRowKey('highest'), utf8(String(this.volumes.highest)));
    await this.overlay.sync();
    await this.volumes.remove(volume);
    this.overlay.put(volumeRowKey(volume.id), undefined);
  }

  /** One after another, in the order of the calls. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#last.then(work, work);
    this.#last = run.catch(() => undefined);
    return run;
  }

  /** Resolves when no exclusive work is under way. */
  async idle(): Promise<void> {
    await this.#last;
  }

  pressure(): { commitMs: number; freeShare: number } {
    const { free, total } = this.#space.space;
    const { log, bulk } = this.#core.lanes;
    return { commitMs: Math.max(log.commitMs, bulk.commitMs), freeShare: total === 0 ? 1 : free / total };
  }
}
