import { fromHex, fromUtf8, WebdfsError } from '@webdfs/base';
import { bucketOf, isObjectKey, keyOf } from '@webdfs/client';
import { type Completion, LEAST_PACE, MOST_PACE, type Problem, type Survey, survey } from '@webdfs/replica';
import type { ClusterAccess } from './cluster-access.ts';
import type { FinishedScrub, ScrubPolicyReport, ScrubProblem, ScrubReport } from './scrub-reports.ts';

/** What each node reads of its disk for a pass that somebody begins, unless they say otherwise: bytes per second. */
const DEFAULT_PACE = 100_000_000;
/** Groups and problems told by name. */
const MAX_NAMED = 256;

/** Begins a pass over everything, at `pace` bytes per second and node. @throws INVALID */
export async function beginScrub(access: ClusterAccess, pace: string | undefined): Promise<ScrubReport> {
  const bytesPerSecond = pace === undefined ? DEFAULT_PACE : Number(pace);
  if (!Number.isInteger(bytesPerSecond) || bytesPerSecond < LEAST_PACE || bytesPerSecond > MOST_PACE) {
    throw new WebdfsError(
      'INVALID',
      `a pace of ${pace} bytes per second: at least ${LEAST_PACE}, at most ${MOST_PACE}`,
    );
  }
  const found = await survey(access, { pass: { id: access.clock.now(), bytesPerSecond } });
  return await reportOf(access, found);
}

/** How far the latest pass is, and what it found. */
export async function scrubReport(access: ClusterAccess): Promise<ScrubReport> {
  return await reportOf(access, await survey(access));
}

/** When a pass last counted everything; undefined: none that any node which answers knows of. */
export async function lastScrub(access: ClusterAccess): Promise<{ running: boolean; last: FinishedScrub | undefined }> {
  const found = await survey(access);
  return { running: stateOf(found) === 'running', last: finishedOf(found.lastComplete) };
}

function finishedOf(completion: Completion | undefined): FinishedScrub | undefined {
  if (completion === undefined) return undefined;
  const { pass, atMs, objects, clean } = completion;
  return { began: new Date(pass).toISOString(), ended: new Date(atMs).toISOString(), objects, clean };
}

function stateOf(found: Survey): ScrubReport['state'] {
  if (found.pass === undefined) return 'none';
  if (found.complete) return 'complete';
  const isWorking = found.nodes.some(({ said }) => typeof said !== 'string' && said.state === 'working');
  return isWorking ? 'running' : 'stopped';
}

async function reportOf(access: ClusterAccess, found: Survey): Promise<ScrubReport> {
  const { pass, policies } = found;
  const buckets = await bucketNames(access, found);
  const last = finishedOf(found.lastComplete);
  return {
    state: stateOf(found),
    ...(pass === undefined
      ? {}
      : { pass: { began: new Date(pass.id).toISOString(), bytesPerSecond: pass.bytesPerSecond } }),
    complete: found.complete,
    clean: found.clean,
    policies: policies.map((policy) => policyOf(policy, buckets)),
    notCounted: found.uncounted.slice(0, MAX_NAMED).map(({ policy, group, why }) => ({ policy, group, why })),
    notCountedGroups: found.uncountedGroups,
    nodes: found.nodes.map(({ node, said }) =>
      typeof said === 'string'
        ? { node, state: 'silent', why: said, isRead: false }
        : {
            node,
            state: said.pass?.id === pass?.id ? said.state : 'waiting',
            isRead: !found.unread.includes(node),
            groups: said.served,
            volumes: { read: said.volumes.read, of: said.volumes.of },
            bytesPerSecond: said.bytesPerSecond,
          },
    ),
    progress: progressOf(found),
    ...(last === undefined ? {} : { lastComplete: last }),
  };
}

function policyOf(
  { policy, copies, groups, counted, tally }: Survey['policies'][number],
  buckets: ReadonlyMap<number, string>,
): ScrubPolicyReport {
  const { objects, others, bytes, found, mended, left, problems, omitted } = tally;
  return {
    policy,
    copies,
    groups,
    countedGroups: counted,
    objects: byCopies(objects),
    others: byCopies(others),
    bytes,
    found,
    mended,
    left,
    problems: problems.slice(0, MAX_NAMED).map((problem) => problemOf(problem, buckets)),
    omitted: omitted + Math.max(0, problems.length - MAX_NAMED),
  };
}

/** `{ "3": 120, "2": 1 }`: how many have so many good copies. */
function byCopies(counts: readonly number[]): Record<string, number> {
  return Object.fromEntries([...counts.entries()].filter(([, count]) => count > 0));
}

function problemOf(problem: Problem, buckets: ReadonlyMap<number, string>): ScrubProblem {
  const { what, copies, wrong, mended, why, group } = problem;
  const rest = { what, group, copies, wrong, mended, ...(why === undefined ? {} : { why }) };
  const key = problem.what === 'block' ? new Uint8Array(0) : fromHex(problem.key);
  if (!isObjectKey(key)) return { ...rest, key: problem.key };
  const number = bucketOf(key);
  return { ...rest, bucket: buckets.get(number) ?? `number ${number}`, key: textOf(keyOf(key)) };
}

function textOf(key: Uint8Array): string {
  try {
    return fromUtf8(key);
  } catch {
    return Buffer.from(key).toString('latin1');
  }
}

async function bucketNames({ objects }: ClusterAccess, found: Survey): Promise<Map<number, string>> {
  if (found.policies.every(({ tally }) => tally.problems.length === 0)) return new Map();
  try {
    return new Map((await objects.listBuckets()).map(({ id, name }) => [id, name]));
  } catch (error) {
    if (!(error instanceof WebdfsError)) throw error;
    // a report is worth having even when the buckets cannot be read
    return new Map();
  }
}

/** Counting reads every copy, and each node's volumes are read once more from end to end. */
function progressOf(found: Survey): ScrubReport['progress'] {
  let counting = 0;
  let volumesLeft = 0;
  let bytesPerSecond = 0;
  let secondsOfVolumes = 0;
  const pace = found.pass?.bytesPerSecond ?? 1;
  for (const { said } of found.nodes) {
    if (typeof said === 'string') continue;
    counting += said.bytesTotal;
    bytesPerSecond += said.bytesPerSecond;
    const { done, read, of, bytes } = said.volumes;
    const left = done ? 0 : bytes * (1 - (of === 0 ? 0 : read / of));
    volumesLeft += left;
    secondsOfVolumes = Math.max(secondsOfVolumes, left / pace);
  }
  const copies = Math.max(1, ...found.policies.map((policy) => policy.copies));
  const counted = found.policies.reduce((sum, { tally }) => sum + tally.bytes, 0);
  const groups = found.policies.reduce((sum, policy) => sum + policy.groups, 0);
  const share = groups === 0 ? 0 : 1 - found.uncountedGroups / groups;
  const countingLeft = found.uncountedGroups === 0 ? 0 : Math.max(0, counting - counted) * copies;
  const rate = Math.max(bytesPerSecond, pace / 100);
  return {
    share: found.complete ? 1 : share * (volumesLeft > 0 ? 0.99 : 1),
    bytesPerSecond,
    secondsLeft: found.complete ? 0 : countingLeft / rate + secondsOfVolumes,
  };
}
