import { codeOf, type NodeId, WebdfsError } from '@webdfs/base';
import {
  exportFrom,
  type MapExport,
  type MapStore,
  type NodeSurvey,
  planRescue,
  putIn,
  parseKey,
} from '@webdfs/cluster';
import { type FolderSeams, openFolderMap } from './moved-map.ts';

/** What a rescue put into the map store, and what it could not know. */
export interface RescueReport {
  readonly name: string;
  readonly era: number;
  readonly nodes: number;
  /** The node whose copy of the map it is; undefined: the store's own was the newest. */
  readonly copyOf: NodeId | undefined;
  readonly copyRevision: number;
  /** Groups whose members are told by their logs, not by the copy. */
  readonly overtaken: number;
  readonly missing: readonly NodeId[];
  readonly mayLose: boolean;
}

export interface RescueOptions {
  readonly name: string;
  readonly without: readonly NodeId[];
  /** So many nodes may be missing that acknowledged writes are lost with them. */
  readonly acceptDataLoss: boolean;
}

/** The state of the same cluster that an old store still has. @throws LOCKED while nodes run on it */
async function knownTo(store: MapStore): Promise<MapExport | undefined> {
  const contents = await store.read();
  const live = contents.entries.filter(({ key }) => parseKey(key)?.type === 'live').map(({ key }) => key.slice(5));
  if (live.length > 0) throw new WebdfsError('LOCKED', `stop all nodes first: ${live.join(', ')} have sessions`);
  try {
    return exportFrom(contents);
  } catch (error) {
    if (codeOf(error) === 'NOT_FOUND') return undefined;
    throw error;
  }
}

/**
 * Puts into a map store what the folders of stopped nodes tell of its cluster.
 *
 * @throws as `planRescue` and `putIn`; INVALID if something may be lost and that was not accepted
 */
export async function rescueMap(
  store: MapStore,
  surveys: readonly NodeSurvey[],
  options: RescueOptions,
): Promise<RescueReport> {
  const known = await knownTo(store);
  const plan = planRescue(surveys, { known, without: options.without });
  if (plan.mayLose && !options.acceptDataLoss) {
    throw new WebdfsError(
      'INVALID',
      `nodes ${plan.missing.join(', ')} are missing: writes that were acknowledged may be on them alone; bring them, or ` +
        'say --accept-data-loss',
    );
  }
  const { name, era, settled } = await putIn(store, plan.exported, options.name, { isRescued: true });
  return {
    name,
    era,
    nodes: settled.subclusters.reduce((sum, { nodes }) => sum + nodes.length, 0),
    copyOf: plan.source,
    copyRevision: plan.exported.revision,
    overtaken: plan.overtaken.length,
    missing: plan.missing,
    mayLose: plan.mayLose,
  };
}

const ASIDE = 'map.damaged';
const MAX_ASIDE = 100;

/**
 * The map store of a folder of "webdfs up" that is to be rescued: a new one if there is none; one that cannot be read is
 * kept as `map.damaged`.
 *
 * @throws LOCKED while the cluster runs
 */
export async function openRescuedMap(seams: FolderSeams): Promise<MapStore> {
  const { disk, folder, log } = seams;
  try {
    return await openFolderMap(seams, true);
  } catch (error) {
    if (codeOf(error) !== 'CORRUPT') throw error;
    let aside = `${folder}/${ASIDE}`;
    for (let i = 2; (await disk.exists(aside)) && i < MAX_ASIDE; i++) aside = `${folder}/${ASIDE}-${i}`;
    log.warn('the damaged map is kept', { folder: aside });
    await disk.rename(`${folder}/map`, aside);
    await disk.syncFolder(folder);
    return await openFolderMap(seams, true);
  }
}
