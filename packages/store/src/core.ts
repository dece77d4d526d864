import type { Clock, Disk, Log, Random, WebdfsError } from '@webdfs/base';
import { Applier, type Tables } from './applier.ts';
import { DamageTable } from './damage-table.ts';
import { GroupLogs } from './group-logs.ts';
import { GroupTable } from './group-table.ts';
import { Lane } from './lane.ts';
import { LocationCache } from './location-cache.ts';
import type { Logged } from './logged.ts';
import { Overlay } from './overlay.ts';
import { Pointers } from './pointers.ts';
import { VolumeReader } from './reader.ts';
import { RequestRows } from './request-rows.ts';
import { Residency } from './residency.ts';
import type { RowChange, RowIndex } from './row-index.ts';
import { StagedTable } from './staged-table.ts';
import { groupRowKey, packGroup, packPlace, packVolume, pendingRowKey, volumeRowKey } from './state-rows.ts';
import { LANE } from './volume-format.ts';
import { type Volume, VolumeTable } from './volume-table.ts';

/** An entry that keeps `v.applied` back for longer than this gets a `q` row instead. */
const PENDING_MS = 1_000;
/** An index batch is synced when so much was appended since the last, or so long ago: bounds the scan after a crash. */
const SYNC_BYTES = 64 * 1024 * 1024;
const SYNC_MS = 30_000;

export interface CoreOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly index: RowIndex;
  readonly storeId: string;
  readonly volumesFolder: string;
  readonly maxVolumeBytes: number;
  readonly cachedBytes: number;
  readonly locationSlots?: number | undefined;
  readonly checkSpace: () => void;
  /** A write found the disk full, whatever was known of its space. */
  readonly onFull: () => Promise<void>;
  /** The disk or the index failed: everything is refused from now on. */
  readonly onFatal: (error: unknown) => void;
}

/** All parts of an open store, wired; nothing has been read or written yet. */
export class Core {
  readonly tables: Tables;
  readonly index: RowIndex;
  readonly cache: LocationCache;
  readonly applier: Applier;
  readonly pointers: Pointers;
  readonly requests: RequestRows;
  readonly residency: Residency;
  readonly reader: VolumeReader;
  readonly lanes: { readonly log: Lane; readonly bulk: Lane };
  readonly logs: GroupLogs;
  /** Who hears of durable entries: the logs, or a recovery under way. */
  committed: (entries: readonly Logged[]) => void;
  readonly #clock: Clock;
  #appendedBytes = 0;
  #syncedMs: number;

  constructor(options: CoreOptions) {
    const { disk, clock, random, log, index, storeId, maxVolumeBytes } = options;
    this.#clock = clock;
    this.#syncedMs = clock.monotonic();
    this.index = index;
    const volumes = new VolumeTable({ disk, clock, random, folder: options.volumesFolder, storeId });
    this.cache = new LocationCache({ random, slots: options.locationSlots });
    const overlay = new Overlay({
      index,
      clock,
      cache: this.cache,
      addState: (changes) => this.#addState(changes),
      onFailed: options.onFatal,
    });
    const damage = new DamageTable({ clock, log, put: (key, value) => overlay.put(key, value) });
    this.tables = { overlay, volumes, damage, groups: new GroupTable(), staged: new StagedTable(), clock };
    this.applier = new Applier(this.tables);
    this.pointers = new Pointers(this.tables);
    this.requests = new RequestRows(clock);
    this.residency = new Residency(options.cachedBytes);
    this.reader = new VolumeReader(this.tables, this.residency);
    const laneOptions = {
      volumes,
      residency: this.residency,
      clock,
      log,
      maxVolumeBytes,
      hold: () => overlay.room(),
      committed: (entries: readonly Logged[]) => this.committed(entries),
      full: () => options.onFull(),
      fatal: (error: WebdfsError) => options.onFatal(error),
    };
    this.lanes = {
      log: new Lane({ ...laneOptions, lane: LANE.LOG }),
      bulk: new Lane({ ...laneOptions, lane: LANE.BULK }),
    };
    this.logs = new GroupLogs({
      tables: this.tables,
      applier: this.applier,
      requests: this.requests,
      log: this.lanes.log,
      bulk: this.lanes.bulk,
      checkSpace: options.checkSpace,
    });
    this.committed = (entries) => this.#committed(entries);
  }

  #committed(entries: readonly Logged[]): void {
    for (const entry of entries) this.#appendedBytes += entry.entryBytes;
    this.logs.committed(entries);
    if (this.#appendedBytes < SYNC_BYTES && this.#clock.monotonic() - this.#syncedMs < SYNC_MS) return;
    this.#appendedBytes = 0;
    this.#syncedMs = this.#clock.monotonic();
    this.tables.overlay.wantSync();
  }

  /** Rows of state as of now: they go with every batch, so that every batch is a checkpoint. */
  #addState(changes: RowChange[]): void {
    const { groups, volumes } = this.tables;
    this.requests.addTo(changes);
    for (const group of groups.takeTouched()) {
      changes.push({ key: groupRowKey(group), value: packGroup(group.row()) });
    }
    for (const volume of volumes.takeTouched()) {
      this.#queueStuck(volume, changes);
      changes.push({ key: volumeRowKey(volume.id), value: packVolume(volume.row()) });
    }
  }

  /** Pending entries that nobody commits must not keep the checkpoint back. */
  #queueStuck(volume: Volume, changes: RowChange[]): void {
    const before = this.#clock.monotonic() - PENDING_MS;
    for (const entry of volume.unsettled) {
      if (entry.settled) continue;
      if (entry.durableMs > before) return;
      entry.queued = true;
      entry.settled = true;
      changes.push({ key: pendingRowKey(entry), value: packPlace(entry) });
    }
  }
}
