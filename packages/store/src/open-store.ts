import { type Clock, codeOf, type Disk, type Log, messageOf, type Random, WebdfsError } from '@webdfs/base';
import { Core } from './core.ts';
import { dropRows } from './drop-rows.ts';
import { type FolderLock, sqliteLock } from './folder-lock.ts';
import { StoreFolder } from './folder.ts';
import { FullDisk, volumeBytesOf } from './full-disk.ts';
import { isUsable, loadPending, loadState, loadVolumes, readyRows } from './load-index.ts';
import { LocalStore } from './local-store.ts';
import { Recovery } from './recovery.ts';
import { Replay } from './replay.ts';
import type { RowIndex, RowIndexHouse } from './row-index.ts';
import { StagingBudget } from './staging.ts';
import type { Identity, Store } from './store.ts';
import { StoreUpkeep } from './store-upkeep.ts';
import { TOMBSTONE_KEEP_MS } from './tombstone-purge.ts';

/** How much the reads of a store may take to be cached by the system. */
const CACHED_BYTES = 512 * 1024 * 1024;

export interface StoreTuning {
  /** Volumes are sealed beyond; 1/32 of the disk, 16 MiB to 1 GiB, if missing. */
  readonly maxVolumeBytes?: number;
  /** Bytes of the system's cache that reads on this thread may count on. */
  readonly cachedBytes?: number;
  /** Rows of records held in memory, a power of two; see `LocationCache`. */
  readonly locationSlots?: number;
  /** Space kept free; see `reserveOf`. */
  readonly reserveBytes?: number;
  /** False: no ballast file. */
  readonly ballast?: boolean;
  readonly tombstoneKeepMs?: number;
  /** Bytes of blocks in memory on their way in. */
  readonly stagingBytes?: number;
}

export interface OpenStoreOptions {
  readonly disk: Disk;
  /** The engine of the index: `LevelIndexHouse`, or `SortedIndexHouse` in a simulation. */
  readonly index: RowIndexHouse;
  /** Made if it does not exist; its parent must. */
  readonly folder: string;
  /** Whose folder it is, or becomes. `storeId`: the id of a new folder, if it was announced before; else drawn. */
  readonly identity: { readonly node: number; readonly cluster: string; readonly storeId?: string };
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** A kernel lock if missing; a simulated disk needs a `MemoryLock`. */
  readonly lock?: FolderLock;
  /** Throw the index away and make it anew from the volumes. */
  readonly rebuild?: boolean;
  /** The disk failed: the store refuses everything from now on, and the process should end. */
  readonly onFailed?: (error: WebdfsError) => void;
  readonly options?: StoreTuning;
}

/** What stays the same whichever index is open. */
interface Place {
  readonly options: OpenStoreOptions;
  readonly folder: StoreFolder;
  readonly identity: Identity;
  readonly space: FullDisk;
  readonly maxVolumeBytes: number;
}

/**
 * Opens a store in a folder: takes its lock, brings the index up to the volumes (or makes it anew), and makes the files of
 * earlier lives read-only. What the store acknowledged before is there when this resolves.
 *
 * @throws LOCKED if it is open elsewhere, BAD_CONFIG if it is another node's, NEWER_FORMAT, CORRUPT, DISK_FULL, DISK_FAILED
 */
export async function openStore(options: OpenStoreOptions): Promise<Store> {
  const { disk, clock, random, log } = options;
  const tuning = options.options ?? {};
  const folder = new StoreFolder(disk, options.folder);
  await disk.makeFolder(folder.path);
  const lock = await (options.lock ?? sqliteLock).hold(folder.lock);
  try {
    const identity = await folder.identify(options.identity, random);
    const { reserveBytes, ballast: keepsBallast } = tuning;
    const space = new FullDisk({
      disk,
      clock,
      log,
      random,
      folder: folder.path,
      ballast: folder.ballast,
      reserveBytes,
      keepsBallast,
    });
    await space.open();
    const maxVolumeBytes = tuning.maxVolumeBytes ?? volumeBytesOf(space.space.total);
    return await openIndexed({ options, folder, identity, space, maxVolumeBytes }, lock);
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
}

async function openIndexed(place: Place, lock: AsyncDisposable): Promise<Store> {
  const { options, folder, identity } = place;
  const index = await usableIndex(place);
  const failure: { error: WebdfsError | undefined } = { error: undefined };
  const core = makeCore(place, index, failure);
  let scanned: number;
  try {
    scanned = await recover(place, core, false);
  } catch (error) {
    await discard(core);
    // an index that cannot even be read up to here is not trusted again
    if (codeOf(error) === 'CORRUPT') await folder.distrustIndex();
    throw error;
  }
  options.log.info('store open', { storeId: identity.storeId, scannedBytes: scanned, objects: countObjects(core) });
  return makeStore(place, core, scanned, async () => {
    await index[Symbol.asyncDispose]();
    await lock[Symbol.asyncDispose]();
  });
}

function countObjects(core: Core): number {
  let objects = 0;
  for (const group of core.tables.groups.all()) objects += group.objects;
  return objects;
}

function makeStore(place: Place, core: Core, scannedAtStart: number, release: () => Promise<void>): Store {
  const { options, folder, identity, space } = place;
  const { disk, clock, random, log } = options;
  const { tables, applier, lanes } = core;
  const tuning = options.options ?? {};
  space.watch();
  return new LocalStore({
    identity,
    core,
    folder,
    space,
    scannedAtStart,
    release,
    upkeep: new StoreUpkeep({ core, disk, log, space }),
    tombstoneKeepMs: tuning.tombstoneKeepMs ?? TOMBSTONE_KEEP_MS,
    staging: {
      tables,
      applier,
      clock,
      random,
      bulk: lanes.bulk,
      budget: new StagingBudget((bytes) => disk.pages(bytes), tuning.stagingBytes),
      checkSpace: () => checkSpace(space),
    },
  });
}

function checkSpace(space: FullDisk): void {
  if (!space.full) return;
  throw new WebdfsError('DISK_FULL', `${space.space.free} bytes free, ${space.reserve} kept in reserve`);
}

function makeCore(place: Place, index: RowIndex, failure: { error: WebdfsError | undefined }): Core {
  const { options, folder, identity, space, maxVolumeBytes } = place;
  const { disk, clock, random, log } = options;
  const core = new Core({
    disk,
    clock,
    random,
    log,
    index,
    maxVolumeBytes,
    storeId: identity.storeId,
    volumesFolder: folder.volumes,
    cachedBytes: options.options?.cachedBytes ?? CACHED_BYTES,
    locationSlots: options.options?.locationSlots,
    checkSpace: () => {
      if (failure.error !== undefined) throw failure.error;
      checkSpace(space);
    },
    onFull: () => space.foundFull(),
    onFatal: (error) => {
      if (failure.error !== undefined) return;
      const stopped =
        codeOf(error) === 'DISK_FAILED'
          ? (error as WebdfsError)
          : new WebdfsError('DISK_FAILED', 'the store has stopped', { cause: error });
      failure.error = stopped;
      log.error('store stopped', { error: messageOf(error) });
      core.lanes.log.stop(stopped);
      core.lanes.bulk.stop(stopped);
      options.onFailed?.(stopped);
    },
  });
  return core;
}

/** Opens the index if it is whole; else makes it from the volumes, in a place of its own until it is. */
async function usableIndex(place: Place): Promise<RowIndex> {
  const { options, folder, identity } = place;
  const { index: house, disk, log } = options;
  await house.remove(folder.newIndex);
  if (options.rebuild !== true && !(await folder.isIndexDistrusted())) {
    const index = await tryOpen(place);
    if (index !== undefined) return index;
  }
  log.info('index is made from the volumes', { storeId: identity.storeId });
  const fresh = await house.open(folder.newIndex);
  const core = makeCore(place, fresh, { error: undefined });
  try {
    await recover(place, core, true);
    await core.lanes.log.close();
    await core.lanes.bulk.close();
    await core.tables.overlay.sync();
  } finally {
    await discard(core);
  }
  await house.remove(folder.index);
  await house.rename(folder.newIndex, folder.index);
  await disk.syncFolder(folder.path);
  await folder.trustIndex();
  return house.open(folder.index);
}

async function tryOpen(place: Place): Promise<RowIndex | undefined> {
  const { options, folder, identity } = place;
  let index: RowIndex | undefined;
  try {
    index = await options.index.open(folder.index);
    if (isUsable(index, identity.storeId)) return index;
  } catch (error) {
    if (codeOf(error) === 'LOCKED' || codeOf(error) === 'DISK_FAILED') throw error;
    options.log.warn('index cannot be used', { error: messageOf(error) });
  }
  await index?.[Symbol.asyncDispose]();
  return undefined;
}

/** Steps 2 to 8. Returns how many bytes were scanned. */
async function recover(place: Place, core: Core, rebuild: boolean): Promise<number> {
  const { options, identity } = place;
  const { tables, applier, logs, requests, lanes, index } = core;
  const { disk, log } = options;
  const replay = new Replay({
    tables,
    applier,
    logs,
    requests,
    rebuild,
    dropRows: (group) => dropRows(tables, applier, index, group),
  });
  const known = await loadVolumes(index);
  await loadState(core);
  const recovery = new Recovery({ disk, log, storeId: identity.storeId, tables, replay, lanes, known, rebuild });
  const committed = core.committed;
  core.committed = recovery.collect;
  await recovery.findFiles();
  // before the first entry of the next tenure is met, and rows of its own come between
  for (const group of tables.groups.all()) if (group.dropping) await dropRows(tables, applier, index, group);
  await loadPending(core, log);
  await recovery.read();
  core.committed = committed;
  for (const [group, { ranges, entries }] of replay.finish()) {
    await logs.voidRanges(group, ranges);
    replay.release(group, entries);
  }
  for (const row of readyRows(identity.storeId)) tables.overlay.put(row.key, row.value);
  await tables.overlay.sync();
  await recovery.sealOld();
  await tables.overlay.settled();
  return recovery.scannedBytes;
}

/** Lets go of what a core holds. */
async function discard(core: Core): Promise<void> {
  await core.tables.volumes.close();
  await core.index[Symbol.asyncDispose]();
}
