import { type Clock, codeOf, type Disk, fromUtf8, type Log, type Random, readWhole, WebdfsError } from '@webdfs/base';
import { LevelIndexHouse, openStore } from '@webdfs/store';

/** What a check of a stopped node's store found. */
export interface StoreFindings {
  readonly node: number;
  readonly rebuilt: boolean;
  /** Entries read and verified, and those that were damaged. */
  readonly entries: number;
  readonly damaged: number;
  readonly objects: number;
  readonly blocks: number;
  readonly liveBytes: number;
  readonly volumeBytes: number;
  readonly damage: readonly { readonly volume: number; readonly place: number; readonly what: string }[];
}

async function identityOf(disk: Disk, folder: string): Promise<{ node: number; cluster: string }> {
  const text = await readWhole(disk, `${folder}/identity`).catch((error: unknown) => {
    if (codeOf(error) !== 'NOT_FOUND') throw error;
    throw new WebdfsError('NOT_FOUND', `${folder} is no node's folder: name one such as ./webdfs-data/node-1`);
  });
  const value: unknown = JSON.parse(fromUtf8(text));
  const node: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'node') : undefined;
  const cluster: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'cluster') : undefined;
  if (typeof node !== 'number' || typeof cluster !== 'string') {
    throw new WebdfsError('CORRUPT', `${folder}/identity does not say whose store this is`);
  }
  return { node, cluster };
}

/**
 * Opens the store of a node that is not running, makes its index anew if asked to, and reads and verifies everything.
 *
 * @throws NOT_FOUND if there is no store in the folder, LOCKED if the node is running
 */
export async function checkStore(options: {
  folder: string;
  rebuildIndex: boolean;
  disk: Disk;
  clock: Clock;
  random: Random;
  log: Log;
  signal: AbortSignal;
}): Promise<StoreFindings> {
  const { folder, disk, clock, random, log } = options;
  const identity = await identityOf(disk, folder);
  await using store = await openStore({
    disk,
    index: new LevelIndexHouse(),
    folder,
    identity,
    clock,
    random,
    log,
    rebuild: options.rebuildIndex,
  });
  const read = await store.scrub({ bytesPerSecond: Number.MAX_SAFE_INTEGER, signal: options.signal });
  const facts = store.facts();
  const damage = await store.damage();
  return {
    node: identity.node,
    rebuilt: options.rebuildIndex,
    ...read,
    objects: facts.objects,
    blocks: facts.blocks,
    liveBytes: facts.liveBytes,
    volumeBytes: facts.volumeBytes,
    damage: damage.map(({ volume, place, what }) => ({ volume, place, what })),
  };
}
