import { asGroupId, codeOf, compareBytes, messageOf, type NodeId, type Revision } from '@webdfs/base';
import {
  behindPrefix,
  decodeListAnswer,
  encodeListRequest,
  GroupSet,
  type ListPage,
  type ListRequest,
  type ListRow,
  MAX_LIST_ROWS,
  type NodeListAnswer,
  VERB,
} from '@webdfs/replica';
import { Age, mapMoves, passes, unavailable } from './retry.ts';
import type { RouterLimits, RouterSeams } from './router-seams.ts';

/** Rows more than its share that each node is asked for, so that one round mostly fills a page. */
const SPARE_ROWS = 16;

/**
 * A page over all groups of a policy, merged from pages of their primaries (protocol R3). Every key in it was read at its
 * primary within this call; the page as a whole is no snapshot.
 *
 * @throws UNAVAILABLE if the groups were not all covered within `listMs`
 */
export async function routedList(seams: RouterSeams, limits: RouterLimits, request: ListRequest): Promise<ListPage> {
  const age = new Age(seams.clock);
  const rows: ListRow[] = [];
  let from: Uint8Array | undefined = request.from;
  while (from !== undefined && rows.length < request.take) {
    // a scan of a long stretch that holds nothing: what was found so far is a page
    if (from !== request.from && age.ms >= limits.listMs) break;
    const left: ListRequest = { ...request, from, take: Math.min(MAX_LIST_ROWS, request.take - rows.length) };
    const stretch: Stretch = await coveredStretch(seams, { age, limitMs: limits.listMs, request: left });
    rows.push(...stretch.rows);
    from = stretch.next;
  }
  // nodes go on behind a common prefix without a look at what is there
  if (rows.at(-1)?.prefix === true && from !== undefined && !(await holdsAny(seams, limits, { ...request, from }))) {
    from = undefined;
  }
  return { rows, next: from };
}

/** Whether any row is left from a key on. */
async function holdsAny(seams: RouterSeams, limits: RouterLimits, request: ListRequest): Promise<boolean> {
  const { policy, from, before } = request;
  if (compareBytes(from, before) >= 0) return false;
  const page = await routedList(seams, limits, { policy, from, before, take: 1 });
  return page.rows.length > 0 || page.next !== undefined;
}

/** Rows of every group of the policy up to `next`. */
interface Stretch {
  readonly rows: readonly ListRow[];
  readonly next: Uint8Array | undefined;
}

interface StretchOptions {
  readonly age: Age;
  readonly limitMs: number;
  readonly request: ListRequest;
}

/** Asks until every group was covered, then merges. */
async function coveredStretch(seams: RouterSeams, options: StretchOptions): Promise<Stretch> {
  const { age, limitMs } = options;
  const size = 2 ** seams.map.view.map.groupBits;
  const covered = new GroupSet(size);
  const answers: NodeListAnswer[] = [];
  let request = options.request;
  for (;;) {
    const view = seams.map.view;
    const round = await askAll(seams, {
      request,
      covered,
      size,
      deadlineMs: limitMs - age.ms,
      first: answers.length === 0,
    });
    let newest = 0;
    for (const answer of round.answers) {
      covered.addAll(answer.covered);
      answers.push(answer);
      newest = Math.max(newest, answer.revision);
    }
    const missing = covered.missing(size, 1);
    if (missing.length === 0) return merged(answers, options.request);
    // later answers need not go further than the page can
    const bound = smallest(answers.map(({ next }) => next));
    if (bound !== undefined && compareBytes(bound, request.before) < 0) request = { ...request, before: bound };
    if (age.ms >= limitMs) {
      const why = round.failure === undefined ? '' : `: ${messageOf(round.failure)}`;
      throw unavailable(
        `group ${request.policy}/${missing[0]} was not covered within ${limitMs} ms${why}`,
        round.failure,
      );
    }
    await catchUp(seams, { seen: view.revision, newest, limitMs: limitMs - age.ms });
  }
}

/** Before the next round: the map that the nodes know, or a little time. */
async function catchUp(
  seams: RouterSeams,
  { seen, newest, limitMs }: { seen: Revision; newest: Revision; limitMs: number },
): Promise<void> {
  if (newest > seams.map.view.revision) {
    await seams.map.readThrough(newest).catch((error: unknown) => {
      if (!passes(error)) throw error;
    });
  }
  if (seams.map.view.revision > seen) return;
  await mapMoves(seams, seen, Math.min(limitMs, 20 + seams.random.fraction() * 30));
}

interface Round {
  readonly request: ListRequest;
  readonly covered: GroupSet;
  readonly size: number;
  readonly deadlineMs: number;
  readonly first: boolean;
}

/** One page from each node that is primary of a group not yet covered. */
async function askAll(seams: RouterSeams, round: Round): Promise<{ answers: NodeListAnswer[]; failure: unknown }> {
  const { request, covered, size, first } = round;
  const wanted = new Map<NodeId, GroupSet>();
  const view = seams.map.view;
  for (const group of covered.missing(size)) {
    const { primary } = view.group({ policy: request.policy, group: asGroupId(group) });
    if (primary === undefined) continue;
    let set = wanted.get(primary);
    if (set === undefined) wanted.set(primary, (set = new GroupSet(size)));
    set.add(group);
  }
  const share = Math.ceil(request.take / Math.max(1, wanted.size)) + SPARE_ROWS;
  const take = wanted.size === 1 || !first ? request.take : Math.min(request.take, share);
  const deadlineMs = Math.max(1, round.deadlineMs);
  const asked = [...wanted].map(async ([node, groups]) => {
    const page = first ? { ...request, take } : { ...request, take, groups };
    const message = encodeListRequest(page, view.revision);
    return decodeListAnswer(await seams.link(node).call(VERB.LIST, message, { deadlineMs }));
  });
  const settled = await Promise.allSettled(asked);
  const answers: NodeListAnswer[] = [];
  let failure: unknown;
  for (const one of settled) {
    if (one.status === 'fulfilled') answers.push(one.value);
    else if (passes(one.reason) || codeOf(one.reason) === 'CANCELLED') failure = one.reason;
    else throw one.reason;
  }
  return { answers, failure };
}

/** The smallest key, undefined if all are undefined (the end). */
function smallest(keys: readonly (Uint8Array | undefined)[]): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  for (const key of keys) {
    if (key !== undefined && (found === undefined || compareBytes(key, found) < 0)) found = key;
  }
  return found;
}

/**
 * All rows in the order of keys up to the smallest end of a truncated answer, at most `take`. A key that two nodes name
 * (its group moved meanwhile) comes once, in its newer version; so does a common prefix.
 */
function merged(answers: readonly NodeListAnswer[], { take }: ListRequest): Stretch {
  const bound = smallest(answers.map(({ next }) => next));
  const all = answers
    .flatMap((answer) => answer.rows)
    .filter((row) => bound === undefined || compareBytes(row.key, bound) < 0)
    .toSorted((a, b) => compareBytes(a.key, b.key) || b.sequence - a.sequence);
  const rows = all.filter((row, i) => i === 0 || compareBytes(row.key, all[i - 1]!.key) !== 0);
  if (rows.length <= take) return { rows, next: bound };
  return { rows: rows.slice(0, take), next: after(rows[take - 1]!) };
}

/** Where the page after a row begins: behind the key, or behind everything that shares the prefix. */
function after(row: ListRow): Uint8Array {
  if (row.prefix) return behindPrefix(row.key);
  const next = new Uint8Array(row.key.length + 1);
  next.set(row.key);
  return next;
}
