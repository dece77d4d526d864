import {
  codeOf,
  type Disk,
  fromUtf8,
  type NodeId,
  type Random,
  readWhole,
  replaceWhole,
  toHex,
  utf8,
  WebdfsError,
} from '@webdfs/base';
import { type Joining, type MapStore, SystemProcesses, takePlace } from '@webdfs/cluster';
import { readIdentity } from '@webdfs/store';
import { readSecrets, saveSecrets, type Secrets } from './credentials.ts';
import { type NodeOptions, type RunningNode, startNode } from './node.ts';
import { secretName } from './token.ts';

export interface JoinedNodeOptions extends Omit<
  NodeOptions,
  'node' | 'secrets' | 'folderOf' | 'storeId' | 'labels' | 'processes'
> {
  /** The cluster's name. */
  readonly name: string;
  /** The place to take, for a new folder of a node that is known. */
  readonly node?: NodeId;
  readonly joining: Joining;
  readonly signal: AbortSignal;
}

const FILE = 'store-id';

/**
 * The id under which a folder asks for its place: its store's, once there is one. Before, one that is kept, so that a
 * place given to this folder is still this folder's after a crash.
 */
async function storeIdOf(disk: Disk, folder: string, random: Random): Promise<string> {
  const identity = await readIdentity(disk, folder);
  if (identity !== undefined) return identity.storeId;
  try {
    const kept = fromUtf8(await readWhole(disk, `${folder}/${FILE}`)).trim();
    if (/^[0-9a-f]{32}$/.test(kept)) return kept;
    throw new WebdfsError('CORRUPT', `${folder}/${FILE} is not 32 hex digits`);
  } catch (error) {
    if (codeOf(error) !== 'NOT_FOUND') throw error;
  }
  const storeId = toHex(random.bytes(16));
  await replaceWhole(disk, folder, FILE, utf8(`${storeId}\n`));
  return storeId;
}

/**
 * Starts this machine's node of a cluster on several: finds or asks for its place, then serves. The folder holds the
 * secrets already (`credentials.json`).
 *
 * @throws as `takePlace` and `startNode`
 */
export async function startJoinedNode(options: JoinedNodeOptions): Promise<RunningNode> {
  const { disk, folder, random, clock, log, name, joining, mapStore, signal } = options;
  const secrets = await readSecrets(disk, folder);
  const storeId = await storeIdOf(disk, folder, random);
  const node = await place(mapStore, {
    store: mapStore,
    name,
    storeId,
    ...(options.node === undefined ? {} : { node: options.node }),
    joining,
    secret: secretName(secrets),
    clock,
    random,
    log,
    signal,
  });
  const folderOf = (peer: NodeId): string | undefined => (peer === node ? folder : undefined);
  // the run before may be on another machine: a folder that was copied
  const processes = new SystemProcesses(disk, { alone: false });
  const save = (changed: Secrets): Promise<void> => saveSecrets(disk, folder, changed);
  return await startNode({
    ...options,
    node,
    secrets,
    saveSecrets: save,
    storeId,
    labels: joining.labels,
    folderOf,
    processes,
  });
}

async function place(mapStore: MapStore, options: Parameters<typeof takePlace>[0]): Promise<NodeId> {
  try {
    return await takePlace(options);
  } catch (error) {
    await mapStore[Symbol.asyncDispose]();
    throw error;
  }
}
