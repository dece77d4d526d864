import { type Ballot, type GroupKey, type NodeId, type Revision, type Sequence, WebdfsError } from '@webdfs/base';
import { ballotOf } from './derive.ts';
import { formatDocument, parseDiskInfo, parseNodeInfo } from './documents.ts';
import { diskKey, downKey, groupKey, MAP_KEY, nodeKey } from './keys.ts';
import type { MapEntry } from './map-store.ts';
import { allGroups, MapSnapshot } from './map-view.ts';
import type { MapExport } from './map-export.ts';
import type { GroupView } from './map.ts';
import { markAfter } from './marks.ts';
import type { NodeMemory } from './node-memory.ts';

/** Where a group's log ends on one node. */
export interface SurveyedGroup extends GroupKey {
  readonly last: Sequence;
  readonly lastBallot: Ballot;
  readonly commit: Sequence;
  readonly role: 'member' | 'learner';
}

/** All that one node's data folder tells about the cluster. */
export interface NodeSurvey {
  readonly node: NodeId;
  /** 32 hex digits each. */
  readonly cluster: string;
  readonly disk: string;
  readonly memory: NodeMemory | undefined;
  /** Its copy of the map; undefined: there is none, or none that can be read. */
  readonly copy: MapExport | undefined;
  readonly groups: readonly SurveyedGroup[];
}

export interface RescuePlan {
  /** What is to be put into the new store. */
  readonly exported: MapExport;
  /** Whose copy it is; undefined: the store's own. */
  readonly source: NodeId | undefined;
  /** Groups whose members are those whose logs end last, not all whom that copy names. */
  readonly overtaken: readonly GroupKey[];
  /** Nodes of the map that were not looked at. */
  readonly missing: readonly NodeId[];
  /** So many copies are missing that something acknowledged may be on them alone. */
  readonly mayLose: boolean;
}

/** Overrides of one revision: as many as fit into one transaction. */
const TOGETHER = 60;

/**
 * The map that follows from what data folders tell, when the store that held it is lost: the newest copy, and for groups
 * that have moved on since, the members whose logs show it.
 *
 * Why nothing acknowledged is lost though a copy may lag: an entry is acknowledged only when it is durable, with its
 * ballot, on every member, at least `minCopies`. If fewer copies than that are missing, one that holds it is here; and the log
 * with the last entry of the largest (ballot, sequence) holds it too, as in a takeover (protocol, T2). So where members by the
 * copy do not all end there, those who do are the members.
 *
 * @param surveys  of nodes that do not run
 * @param known    the store's own contents, if it is there and only old
 * @param without  nodes that are lost for good
 * @throws NOT_FOUND if there is no copy, or a node is missing that `without` does not name; WRONG_PEER if the folders are of
 *   several clusters, CONFLICT if two are of one node
 */
export function planRescue(
  surveys: readonly NodeSurvey[],
  { known, without = [] }: { readonly known?: MapExport | undefined; readonly without?: readonly NodeId[] } = {},
): RescuePlan {
  checkSame(surveys, known);
  const { source, copy } = newestOf(surveys, known);
  const view = snapshotOf(copy);
  const missing = missingFrom(view, surveys, without);
  const writer = new Amendment(copy);
  for (const survey of surveys) writer.amendNode(view, survey);
  for (const node of missing) writer.markMissing(view, node);
  const overtaken = overtakenGroups(view, copy, surveys);
  writer.addOverrides(overtaken);
  const era = Math.max(copy.map.era, ...surveys.map(newestEra));
  return {
    exported: writer.finish(era),
    source,
    overtaken: overtaken.map(({ group }) => group),
    missing,
    mayLose: mayLose(view, surveys, missing.length),
  };
}

function checkSame(surveys: readonly NodeSurvey[], known: MapExport | undefined): void {
  const clusters = new Set(surveys.map(({ cluster }) => cluster));
  for (const { copy } of surveys) if (copy !== undefined) clusters.add(copy.map.cluster);
  if (known !== undefined) clusters.add(known.map.cluster);
  if (clusters.size > 1) {
    throw new WebdfsError('WRONG_PEER', `the folders are of several clusters: ${[...clusters].toSorted().join(', ')}`);
  }
  const seen = new Set<NodeId>();
  for (const { node } of surveys) {
    if (seen.has(node))
      throw new WebdfsError('CONFLICT', `two folders are of node ${node}: name the one that ran last`);
    seen.add(node);
  }
}

function newestOf(
  surveys: readonly NodeSurvey[],
  known: MapExport | undefined,
): { readonly source: NodeId | undefined; readonly copy: MapExport } {
  const copies = surveys.flatMap(({ node, copy }) => (copy === undefined ? [] : [{ source: node, copy }]));
  const all: { source: NodeId | undefined; copy: MapExport }[] = [...copies];
  if (known !== undefined) all.push({ source: undefined, copy: known });
  const [newest] = all.toSorted((a, b) => b.copy.map.era - a.copy.map.era || b.copy.revision - a.copy.revision);
  if (newest === undefined) {
    throw new WebdfsError('NOT_FOUND', 'none of the folders has a copy of the map that can be read');
  }
  return newest;
}

function snapshotOf({ map, revision, entries }: MapExport): MapSnapshot {
  const entry = { key: MAP_KEY, value: formatDocument(map), createRevision: revision, modRevision: revision };
  return MapSnapshot.of({ revision, entries: [...entries, entry] });
}

/** @throws NOT_FOUND */
function missingFrom(view: MapSnapshot, surveys: readonly NodeSurvey[], without: readonly NodeId[]): readonly NodeId[] {
  const here = new Set(surveys.map(({ node }) => node));
  // a place that no folder has claimed yet holds nothing
  const missing = view.nodes().filter((node) => !here.has(node) && (view.disk(node)?.id ?? '') !== '');
  const unnamed = missing.filter((node) => !without.includes(node));
  if (unnamed.length > 0) {
    throw new WebdfsError(
      'NOT_FOUND',
      `the map has nodes whose folders were not named: ${unnamed.join(', ')}; name them, or say that they are lost with ` +
        unnamed.map((node) => `--without ${node}`).join(' '),
    );
  }
  return missing;
}

/** What one more era adds to a ballot. */
const ERA = ballotOf(1, 1) - ballotOf(0, 1);

function newestEra({ memory, groups }: NodeSurvey): number {
  return groups.reduce((newest, { lastBallot }) => Math.max(newest, Math.floor(lastBallot / ERA)), memory?.era ?? 0);
}

/**
 * Copies that are not here, or no more: of missing nodes, of disks that were exchanged after the copy was made, and, where there
 * is one of these, of members by the copy that have begun to learn anew.
 */
function mayLose(view: MapSnapshot, surveys: readonly NodeSurvey[], missing: number): boolean {
  const replaced = surveys.filter(({ node, disk }) => ![undefined, '', disk].includes(view.disk(node)?.id));
  const gone = missing + replaced.length;
  if (gone === 0) return false;
  const learning = new Map<string, readonly NodeId[]>();
  for (const { node, groups } of surveys) {
    for (const group of groups) {
      if (group.role === 'member') continue;
      learning.set(groupKey(group), [...(learning.get(groupKey(group)) ?? []), node]);
    }
  }
  return [...allGroups(view.map)].some((key) => {
    const { inSync, eligible, minCopies } = view.group(key);
    const anew = (learning.get(groupKey(key)) ?? []).filter((node) => inSync.includes(node) || eligible.includes(node));
    return gone + anew.length >= minCopies;
  });
}

interface Overtaken {
  readonly group: GroupKey;
  readonly members: readonly NodeId[];
}

type End = SurveyedGroup & { readonly node: NodeId };

function isBehind(a: SurveyedGroup, b: SurveyedGroup): boolean {
  return a.lastBallot === b.lastBallot ? a.last < b.last : a.lastBallot < b.lastBallot;
}

function overtakenGroups(view: MapSnapshot, copy: MapExport, surveys: readonly NodeSurvey[]): Overtaken[] {
  const ends = new Map<string, End[]>();
  for (const { node, groups } of surveys) {
    for (const group of groups) {
      // what a learner has is no whole copy, and no acknowledgement waited for it alone
      if (group.role === 'learner') continue;
      const key = groupKey(group);
      const known = ends.get(key);
      if (known === undefined) ends.set(key, [{ ...group, node }]);
      else known.push({ ...group, node });
    }
  }
  const here = new Set(surveys.map(({ node }) => node));
  const newest = ballotOf(copy.map.era, copy.revision);
  return [...allGroups(view.map)].flatMap((group) => {
    const found = ends.get(groupKey(group)) ?? [];
    const members = membersAfter(view.group(group), found, here, newest);
    return members === undefined ? [] : [{ group, members }];
  });
}

/**
 * The members of a group by what logs show; undefined: they are those of the copy. The furthest log holds everything
 * acknowledged, as in a takeover, whoever's it is. Whoever ends before it may have left after the copy was made: the others
 * may have committed without it what it had not got yet, under the ballot that those entries had before.
 */
function membersAfter(
  view: GroupView,
  ends: readonly End[],
  here: ReadonlySet<NodeId>,
  newest: Ballot,
): readonly NodeId[] | undefined {
  const best = furthest(ends);
  if (best === undefined) return undefined;
  const named = [...view.inSync, ...view.eligible].filter((node) => here.has(node));
  // all who should hold it are missing: unless it went on after the copy was made, it waits for them
  if (named.length === 0 && best.lastBallot <= newest) return undefined;
  const level = levelWith(best, ends, view);
  return named.length > 0 && named.every((node) => level.includes(node)) ? undefined : level;
}

function furthest(ends: readonly End[]): End | undefined {
  let best = ends[0];
  if (best !== undefined) for (const end of ends) if (isBehind(best, end)) best = end;
  return best;
}

/** Those whose logs end where the furthest one's does, members of old first. */
function levelWith({ last, lastBallot }: End, ends: readonly End[], view: GroupView): readonly NodeId[] {
  const level = ends.filter((end) => end.last === last && end.lastBallot === lastBallot).map(({ node }) => node);
  const placed = view.members.filter((node) => level.includes(node));
  return [...placed, ...level.filter((node) => !placed.includes(node))];
}

/** A copy of a map that is being brought up to what the folders tell. */
class Amendment {
  readonly #copy: MapExport;
  readonly #entries: Map<string, MapEntry>;
  #revision: Revision;

  constructor(copy: MapExport) {
    this.#copy = copy;
    this.#entries = new Map(copy.entries.map((entry) => [entry.key, entry]));
    this.#revision = copy.revision;
  }

  /** Its life goes on from what its disk says; a disk that the copy does not know is one that came later, and a new one. */
  amendNode(view: MapSnapshot, { node, disk, memory }: NodeSurvey): void {
    const info = view.node(node);
    const life = Math.max(info?.life ?? 0, memory?.life ?? 0);
    const known = this.#entries.get(nodeKey(node));
    if (known === undefined || info === undefined) {
      this.#put(nodeKey(node), formatDocument({ address: '', labels: {}, life }), ++this.#revision);
    } else {
      const value = formatDocument({ ...parseNodeInfo(known.key, known.value), life });
      this.#entries.set(known.key, { ...known, value });
    }
    const there = this.#entries.get(diskKey(node));
    const id = there === undefined ? undefined : parseDiskInfo(there.key, there.value).id;
    if (id === disk || id === '') return;
    this.#revision++;
    this.#put(diskKey(node), formatDocument({ id: disk, founding: false }), this.#revision);
    this.#put(downKey(node), formatDocument(markAfter(view, node, 'its disk was new', 0)), this.#revision);
  }

  /** It takes part in nothing until it has caught up. */
  markMissing(view: MapSnapshot, node: NodeId): void {
    const mark = markAfter(view, node, 'it was not there when the map was rescued', 0);
    this.#put(downKey(node), formatDocument(mark), ++this.#revision);
  }

  addOverrides(overtaken: readonly Overtaken[]): void {
    for (const [i, { group, members }] of overtaken.entries()) {
      if (i % TOGETHER === 0) this.#revision++;
      this.#put(groupKey(group), formatDocument({ members, eligible: [], from: [] }), this.#revision);
    }
  }

  #put(key: string, value: string, revision: Revision): void {
    const createRevision = this.#entries.get(key)?.createRevision ?? revision;
    this.#entries.set(key, { key, value, createRevision, modRevision: revision });
  }

  finish(era: number): MapExport {
    const entries = [...this.#entries.values()].toSorted((a, b) => a.modRevision - b.modRevision);
    return { map: { ...this.#copy.map, era }, revision: this.#copy.revision, entries };
  }
}
