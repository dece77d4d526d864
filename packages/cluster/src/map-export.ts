import { messageOf, type Revision, WebdfsError } from '@webdfs/base';
import { parseClusterMap } from './documents.ts';
import { CONTROLLER_KEY, FOUNDING_KEY, FROZEN_KEY, JOIN_PREFIX, MAP_KEY, parseKey } from './keys.ts';
import type { ClusterMap } from './map.ts';
import type { MapContents, MapEntry, MapStore } from './map-store.ts';

/** A map on its way from one store to another. The old store is frozen: nobody can go on with it. */
export interface MapExport {
  readonly map: ClusterMap;
  /** Of the old store. */
  readonly revision: Revision;
  /** All other keys but sessions and what is bound to them, by age. */
  readonly entries: readonly MapEntry[];
}

const FORMAT = 1;
const MAX_CHARACTERS = 64 * 1024 * 1024;

/** Keys that mean nothing in another store. */
function staysBehind(key: string): boolean {
  if (key === CONTROLLER_KEY || key === FOUNDING_KEY || key === FROZEN_KEY || key.startsWith(JOIN_PREFIX)) return true;
  return parseKey(key)?.type === 'live';
}

/** What would go to another store, whoever still has a session in this one. @throws NOT_FOUND if there is no cluster, CORRUPT */
export function exportFrom({ revision, entries }: MapContents): MapExport {
  const map = entries.find(({ key }) => key === MAP_KEY);
  if (map === undefined) throw new WebdfsError('NOT_FOUND', 'the map store holds no cluster');
  return {
    map: parseClusterMap(MAP_KEY, map.value),
    revision,
    entries: entries
      .filter(({ key }) => key !== MAP_KEY && !staysBehind(key))
      .toSorted((a, b) => a.modRevision - b.modRevision || (a.key < b.key ? -1 : 1)),
  };
}

/** @throws NOT_FOUND if there is no cluster, LOCKED while a node has a session, CORRUPT */
function exportOf(contents: MapContents): MapExport {
  const { entries } = contents;
  const exported = exportFrom(contents);
  const live = entries.filter(({ key }) => parseKey(key)?.type === 'live').map(({ key }) => key.slice('live/'.length));
  if (live.length > 0) {
    throw new WebdfsError(
      'LOCKED',
      `stop all nodes first: ${live.join(', ')} ${live.length === 1 ? 'has a session' : 'have sessions'}`,
    );
  }
  return exported;
}

/**
 * Takes a map out of its store and freezes the store, in this order of safety: frozen first, so that no node registers with
 * a map that is elsewhere already. Asking again gives the same.
 *
 * @throws NOT_FOUND if there is no cluster, LOCKED while a node has a session, CONFLICT if one registers meanwhile
 */
export async function takeOut(store: MapStore): Promise<MapExport> {
  const before = await store.read();
  const found = exportOf(before);
  if (isFrozen(before)) return found;
  const { done } = await store.transact({
    compare: [{ type: 'range', prefix: '', notAfter: before.revision }],
    write: [{ type: 'put', key: FROZEN_KEY, value: JSON.stringify({ revision: before.revision }) }],
  });
  if (!done) throw new WebdfsError('CONFLICT', 'the map was written to while it was taken out: stop all nodes first');
  return found;
}

/** Whether a map was taken out of this store. */
export function isFrozen({ entries }: MapContents): boolean {
  return entries.some(({ key }) => key === FROZEN_KEY);
}

/** Lets a store go on whose map was taken out, for when it never arrived elsewhere. */
export async function unfreeze(store: MapStore): Promise<void> {
  await store.transact({ compare: [], write: [{ type: 'delete', key: FROZEN_KEY }] });
}

/** As text, a key a line. */
export function formatExport({ map, revision, entries }: MapExport): string {
  const head = JSON.stringify({ webdfsMap: FORMAT, revision, keys: entries.length, map });
  const rows = entries.map((entry) =>
    JSON.stringify([entry.key, entry.value, entry.createRevision, entry.modRevision]),
  );
  return [head, ...rows, ''].join('\n');
}

function entryOf(line: string): MapEntry {
  const row: unknown = JSON.parse(line);
  if (!Array.isArray(row)) throw new WebdfsError('CORRUPT', 'a line is no key');
  const [key, value, createRevision, modRevision] = row as unknown[];
  if (typeof key !== 'string' || typeof value !== 'string') throw new WebdfsError('CORRUPT', 'a line is no key');
  return { key, value, createRevision: count(createRevision), modRevision: count(modRevision) };
}

function count(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new WebdfsError('CORRUPT', 'not a revision');
  return value as number;
}

/** @throws CORRUPT if it is no whole export, NEWER_FORMAT */
export function parseExport(text: string): MapExport {
  if (text.length > MAX_CHARACTERS) throw new WebdfsError('TOO_LARGE', `an export of ${text.length} characters`);
  const [first = '', ...lines] = text.split('\n');
  try {
    const head = JSON.parse(first) as Record<string, unknown>;
    const format = count(head['webdfsMap']);
    if (format > FORMAT) throw new WebdfsError('NEWER_FORMAT', `format ${format}, this program knows ${FORMAT}`);
    const entries = lines.filter((line) => line !== '').map(entryOf);
    if (entries.length !== head['keys'] || !text.endsWith('\n')) {
      throw new WebdfsError('CORRUPT', `${entries.length} keys of ${String(head['keys'])}: it was cut`);
    }
    const map = parseClusterMap(MAP_KEY, JSON.stringify(head['map']));
    return { map, revision: count(head['revision']), entries };
  } catch (error) {
    const code = error instanceof WebdfsError && error.code === 'NEWER_FORMAT' ? 'NEWER_FORMAT' : 'CORRUPT';
    throw new WebdfsError(code, `that is no exported map: ${messageOf(error)}`, { cause: error });
  }
}
