import { assert, type Revision, WebdfsError } from '@webdfs/base';
import { formatDocument, parseClusterMap, parseDownInfo, parseOverride } from './documents.ts';
import { FOUNDING_KEY, MAP_KEY, parseKey } from './keys.ts';
import type { ClusterMap, DownInfo, Policy } from './map.ts';
import { isFrozen, type MapExport } from './map-export.ts';
import type { MapContents, MapEntry, MapStore, Write } from './map-store.ts';

/**
 * Revisions are the new store's own, yet which of two things came first decides who is in sync. So the keys are written in
 * the order of their old revisions, a transaction for each; and a revision that values name, though no key has it any more,
 * is written as a transaction that says nothing.
 */

const BATCH = 120;
/** Written where a revision is needed and no key. */
const PAUSE: Write = { type: 'put', key: FOUNDING_KEY, value: '{"importing":true}' };

type Renumber = (old: Revision) => Revision;

/** Revisions that a value names. */
function namedIn({ key, value }: MapEntry): readonly Revision[] {
  if (parseKey(key)?.type !== 'down') return [];
  const { earlier = [], forgets } = parseDownInfo(key, value);
  return forgets === undefined ? earlier : [...earlier, forgets];
}

/** A value in the new store. Sessions are gone with the old one, and so is whoever they fenced. */
function valueIn({ key, value }: MapEntry, renumber: Renumber): string {
  const type = parseKey(key)?.type;
  if (type === 'down') return formatDocument(downIn(parseDownInfo(key, value), renumber));
  if (type === 'group') return formatDocument({ ...parseOverride(key, value), from: [] });
  return value;
}

function downIn(info: DownInfo, renumber: Renumber): DownInfo {
  const { earlier, forgets } = info;
  return {
    ...info,
    session: 0,
    ...(earlier === undefined ? {} : { earlier: earlier.map(renumber) }),
    ...(forgets === undefined ? {} : { forgets: renumber(forgets) }),
  };
}

function policyIn(policy: Policy, renumber: Renumber): Policy {
  const { minCopiesSince } = policy;
  return { ...policy, minCopiesSince: minCopiesSince === 0 ? 0 : renumber(minCopiesSince) };
}

/** What each old revision writes; a slice that was written again is made at its first revision already. */
function writesByRevision(exported: MapExport): Map<Revision, MapEntry[]> {
  const byRevision = new Map<Revision, MapEntry[]>();
  const at = (revision: Revision): MapEntry[] => {
    const entries = byRevision.get(revision) ?? [];
    byRevision.set(revision, entries);
    return entries;
  };
  for (const { minCopiesSince } of exported.map.policies) if (minCopiesSince > 0) at(minCopiesSince);
  for (const entry of exported.entries) {
    at(entry.modRevision).push(entry);
    const isSlice = parseKey(entry.key)?.type === 'slice';
    if (isSlice && entry.createRevision < entry.modRevision) at(entry.createRevision).push(entry);
    for (const revision of namedIn(entry)) at(revision);
  }
  return byRevision;
}

/** Writes to a store without a cluster, as long as nobody else does. */
class Importer {
  readonly #store: MapStore;
  #revision: Revision;

  constructor(store: MapStore, revision: Revision) {
    this.#store = store;
    this.#revision = revision;
  }

  async write(writes: readonly Write[]): Promise<Revision> {
    const { done, revision } = await this.#store.transact({
      compare: [{ type: 'range', prefix: '', notAfter: this.#revision }],
      write: writes,
    });
    if (!done) throw new WebdfsError('CONFLICT', 'the map store was written to while a map was being imported');
    this.#revision = revision;
    return revision;
  }
}

/** @throws ALREADY_EXISTS if a cluster is there that goes on, or another one; OLD_STORE if it is newer */
function checkReplaceable(contents: MapContents, exported: MapExport, isRescued: boolean): void {
  const value = contents.entries.find(({ key }) => key === MAP_KEY)?.value;
  if (value === undefined) return;
  const there = parseClusterMap(MAP_KEY, value);
  if (isRescued && there.cluster === exported.map.cluster && there.era <= exported.map.era) return;
  if (!isFrozen(contents) || there.cluster !== exported.map.cluster) {
    throw new WebdfsError('ALREADY_EXISTS', 'the map store holds a cluster already');
  }
  if (there.era >= exported.map.era) {
    throw new WebdfsError('OLD_STORE', `era ${there.era} is there, and the imported map is of era ${exported.map.era}`);
  }
}

/** Removes what an import that was cut short has left, and a frozen map that was moved elsewhere and comes back. */
async function emptied(store: MapStore, exported: MapExport, isRescued: boolean): Promise<Importer> {
  const contents = await store.read();
  checkReplaceable(contents, exported, isRescued);
  const importer = new Importer(store, contents.revision);
  // the map goes first: cut short, the rest is nobody's
  const keys = contents.entries.map(({ key }) => key).toSorted((a, b) => Number(b === MAP_KEY) - Number(a === MAP_KEY));
  for (let i = 0; i < keys.length; i += BATCH) {
    await importer.write(keys.slice(i, i + BATCH).map((key) => ({ type: 'delete', key })));
  }
  return importer;
}

/**
 * Puts a map into a store that holds no cluster, in a new era: everything that follows from it, members, eligible ones and
 * health of every group, is what it was, and every ballot is above all of the old store. Last comes the key `map`, so that
 * the cluster is there wholly or not at all; cut short, it is done again.
 *
 * @param options.isRescued  the store's own state of this cluster, a restored one, went into what is put there
 * @throws ALREADY_EXISTS if there is another cluster, or this one goes on there, OLD_STORE, CONFLICT if somebody else writes meanwhile, UNAVAILABLE
 */
export async function putIn(
  store: MapStore,
  exported: MapExport,
  name: string,
  options: { readonly isRescued?: boolean } = {},
): Promise<ClusterMap> {
  const importer = await emptied(store, exported, options.isRescued === true);
  const renumbered = new Map<Revision, Revision>();
  const renumber: Renumber = (old) => {
    const revision = renumbered.get(old);
    assert(revision !== undefined, 'revisions that a value names are older than it');
    return revision;
  };
  const byRevision = writesByRevision(exported);
  for (const old of [...byRevision.keys()].toSorted((a, b) => a - b)) {
    const writes = byRevision.get(old)!.map((entry): Write => {
      return { type: 'put', key: entry.key, value: valueIn(entry, renumber) };
    });
    renumbered.set(old, await importer.write(writes.length === 0 ? [PAUSE] : writes));
  }
  const { map, revision } = exported;
  const moved: ClusterMap = {
    ...map,
    name,
    era: map.era + 1,
    policies: map.policies.map((policy) => policyIn(policy, renumber)),
    importedFrom: { era: map.era, revision },
  };
  await importer.write([
    { type: 'put', key: MAP_KEY, value: formatDocument(moved) },
    { type: 'delete', key: FOUNDING_KEY },
  ]);
  return moved;
}
