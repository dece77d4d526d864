import type { Clock, Disk, Log } from '@webdfs/base';
import type { DamageTable } from './damage-table.ts';
import type { GroupTable } from './group-table.ts';
import type { Overlay } from './overlay.ts';
import type { Pointers } from './pointers.ts';
import type { Residency } from './residency.ts';
import type { StagedTable } from './staged-table.ts';
import type { Volume, VolumeTable } from './volume-table.ts';

/**
 * What compaction and scrub stand on. Copying: `volumes.acquire` the source, `scanVolume` it, ask `pointers.points`, write
 * the copies to a `volumes.create(LANE.COMPACTED)` (with flag MOVED, their own volume, place and durable stamped),
 * `datasync`, `volumes.seal`, then `pointers.redirect` each, `retire` the source.
 */
export interface Upkeep {
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
  /** Why this volume may not be compacted now; undefined if it may. */
  blocked(volume: Volume): 'open' | 'pending' | 'damage' | undefined;
  /**
   * Removes a sealed volume that no row points to: state `gone` in a synced batch, then, once nobody reads it, unlink,
   * sync of the folder, and its `v` row goes. Until that sync `volumes.get` still finds it: it counts as existing.
   */
  retire(volume: Volume): Promise<void>;
  /** Work that must not overlap: compaction, and dropping a group. */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
  /** 99th percentile of recent commits, ms, and free space as a share of the disk: what the throttle goes by. */
  pressure(): { commitMs: number; freeShare: number };
}
