import {
  asGroupId,
  asNodeId,
  asPolicyId,
  type Clock,
  type Disk,
  type Log,
  messageOf,
  type Random,
  WebdfsError,
} from '@webdfs/base';
import {
  formatExport,
  type NodeSurvey,
  parseExport,
  type SurveyedGroup,
  unpackMapCopy,
  unpackMemory,
} from '@webdfs/cluster';
import { LevelIndexHouse, openStore, readIdentity, type Store } from '@webdfs/store';

/** What a stopped node's folder tells about its cluster, and the text by which it is taken to another machine. */

export interface SurveyOptions {
  /** A node's own folder. Absolute. */
  readonly folder: string;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

const FORMAT = 1;
const MAX_CHARACTERS = 256 * 1024 * 1024;

/** @throws NOT_FOUND if the folder is no node's, LOCKED while the node runs, CORRUPT */
export async function surveyFolder(options: SurveyOptions): Promise<NodeSurvey> {
  const { folder, disk, clock, random, log } = options;
  const identity = await readIdentity(disk, folder);
  if (identity === undefined) {
    throw new WebdfsError('NOT_FOUND', `${folder} is no node's folder: name one such as ./webdfs-data/node-1`);
  }
  await using store = await openStore({ disk, index: new LevelIndexHouse(), folder, identity, clock, random, log });
  const memory = await store.loadFile('life');
  return {
    node: asNodeId(identity.node),
    cluster: identity.cluster,
    disk: identity.storeId,
    memory: memory && unpackMemory(memory),
    copy: await copyIn(store, options),
    groups: store.groups().map((group): SurveyedGroup => {
      const { last, lastBallot, commit, mark } = store.log(group);
      // without a mark it has answered nobody yet: it counts for nothing
      return { ...group, last, lastBallot, commit, role: mark?.role ?? 'learner' };
    }),
  };
}

/** A copy that cannot be read is none: others may have a better one. */
async function copyIn(store: Store, { folder, log }: SurveyOptions): Promise<NodeSurvey['copy']> {
  const bytes = await store.loadFile('map');
  if (bytes === undefined) return undefined;
  try {
    return unpackMapCopy(bytes);
  } catch (error) {
    if (!(error instanceof WebdfsError) || error.code === 'NEWER_FORMAT') throw error;
    log.error('map.copy', { folder, reason: messageOf(error) });
    return undefined;
  }
}

/** As text: a line of JSON, a line for each group, then the copy of the map. */
export function formatSurvey({ copy, groups, ...head }: NodeSurvey): string {
  const rows = groups.map(({ policy, group, last, lastBallot, commit, role }) =>
    JSON.stringify([policy, group, last, lastBallot, commit, role]),
  );
  const first = JSON.stringify({ webdfsSurvey: FORMAT, ...head, groups: groups.length, copy: copy !== undefined });
  return `${[first, ...rows].join('\n')}\n${copy === undefined ? '' : formatExport(copy)}`;
}

function count(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new WebdfsError('CORRUPT', 'not a count');
  return value as number;
}

function digits(value: unknown): string {
  if (typeof value !== 'string' || !/^[0-9a-f]{32}$/.test(value)) throw new WebdfsError('CORRUPT', 'not an id');
  return value;
}

function groupOf(line: string): SurveyedGroup {
  const row: unknown = JSON.parse(line);
  if (!Array.isArray(row) || row.length !== 6) throw new WebdfsError('CORRUPT', 'a line is no group');
  const [policy, group, last, lastBallot, commit, role] = row as unknown[];
  if (role !== 'member' && role !== 'learner') throw new WebdfsError('CORRUPT', 'a group without a role');
  return {
    policy: asPolicyId(count(policy)),
    group: asGroupId(count(group)),
    last: count(last),
    lastBallot: count(lastBallot),
    commit: count(commit),
    role,
  };
}

/** @throws CORRUPT if it is no whole survey, NEWER_FORMAT, TOO_LARGE */
export function parseSurvey(text: string): NodeSurvey {
  if (text.length > MAX_CHARACTERS) throw new WebdfsError('TOO_LARGE', `a survey of ${text.length} characters`);
  try {
    const lines = text.split('\n');
    const head = JSON.parse(lines[0]!) as Record<string, unknown>;
    const format = count(head['webdfsSurvey']);
    if (format > FORMAT) throw new WebdfsError('NEWER_FORMAT', `format ${format}, this program knows ${FORMAT}`);
    const groups = count(head['groups']);
    if (lines.length < groups + 2) throw new WebdfsError('CORRUPT', 'it was cut');
    const memory = head['memory'] as NodeSurvey['memory'];
    return {
      node: asNodeId(count(head['node'])),
      cluster: digits(head['cluster']),
      disk: digits(head['disk']),
      memory: memory && unpackMemory(Buffer.from(JSON.stringify(memory))),
      groups: lines.slice(1, groups + 1).map(groupOf),
      copy: head['copy'] === true ? parseExport(lines.slice(groups + 1).join('\n')) : undefined,
    };
  } catch (error) {
    const code = error instanceof WebdfsError && error.code === 'NEWER_FORMAT' ? 'NEWER_FORMAT' : 'CORRUPT';
    throw new WebdfsError(code, `that is no survey of a node: ${messageOf(error)}`, { cause: error });
  }
}
