import { type Clock, codeOf, type Disk, type Log, type Random, WebdfsError } from '@webdfs/base';
import {
  connectMapStore,
  EmbeddedMapOwner,
  formatExport,
  type MapStore,
  type MapUsage,
  parseExport,
  putIn,
  SystemProcesses,
  takeOut,
  usageOf,
} from '@webdfs/cluster';
import { mapSocketOf } from './owned-map.ts';

export interface FolderSeams {
  /** The cluster's folder, as `webdfs up` keeps it. Absolute. */
  readonly folder: string;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

const SOCKET_MS = 500;

/**
 * The embedded map store of a cluster that does not run.
 *
 * @throws LOCKED while it runs, NOT_FOUND if the folder holds no map and none is to be made
 */
export async function openFolderMap(seams: FolderSeams, make: boolean): Promise<MapStore> {
  const { disk, folder } = seams;
  if (!make && !(await disk.exists(`${folder}/map`))) {
    throw new WebdfsError('NOT_FOUND', `${folder} holds no cluster of "webdfs up"`);
  }
  await disk.makeFolder(folder);
  const owner = await EmbeddedMapOwner.open({
    ...seams,
    folder: `${folder}/map`,
    processes: new SystemProcesses(disk),
  });
  const store = owner.connect();
  const close = store[Symbol.asyncDispose].bind(store);
  return Object.assign(store, {
    async [Symbol.asyncDispose](): Promise<void> {
      await close();
      await owner[Symbol.asyncDispose]();
    },
  });
}

/** The same, of a cluster that may run. */
export async function openReadableMap(seams: FolderSeams): Promise<MapStore> {
  const { folder, clock, log } = seams;
  const running = connectMapStore(mapSocketOf(folder), clock, log, { timeoutMs: SOCKET_MS });
  try {
    await running.fresh(0);
    return running;
  } catch (error) {
    await running[Symbol.asyncDispose]();
    if (codeOf(error) !== 'UNAVAILABLE') throw error;
    return await openFolderMap(seams, false);
  }
}

/** A map as text, for `importMap`; its store is frozen. @throws as `takeOut` */
export async function exportMap(store: MapStore): Promise<string> {
  return formatExport(await takeOut(store));
}

/** @throws as `parseExport` and `putIn` */
export async function importMap(
  store: MapStore,
  text: string,
  name: string,
): Promise<{ readonly name: string; readonly era: number; readonly nodes: number }> {
  const { name: named, era, settled } = await putIn(store, parseExport(text), name);
  const nodes = settled.subclusters.reduce((sum, { nodes }) => sum + nodes.length, 0);
  return { name: named, era, nodes };
}

/** What a map store holds. `prefix`: what it puts before each key. */
export async function mapUsage(store: MapStore, prefix = ''): Promise<MapUsage> {
  return usageOf(await store.read(), prefix.length);
}
