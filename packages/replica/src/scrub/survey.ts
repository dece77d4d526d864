import { type Clock, type GroupKey, messageOf, type NodeId } from '@webdfs/base';
import { allGroups, type LocalMap, type MapView } from '@webdfs/cluster';
import type { Link } from '@webdfs/wire';
import { VERB } from '../verbs.ts';
import type { Completion, Pass } from './pass.ts';
import { decodeNodeScrub, encodeScrubRequest, type NodeScrub } from './scrub-codec.ts';
import { addTally, emptyTally, type Tally } from './tally.ts';

/** A group that is not counted in the pass, and why. */
export interface Uncounted extends GroupKey {
  readonly why: string;
}

export interface PolicySurvey {
  readonly policy: number;
  readonly copies: number;
  readonly groups: number;
  readonly counted: number;
  readonly tally: Tally;
}

/** What the nodes together say of the latest pass. */
export interface Survey {
  readonly pass: Pass | undefined;
  readonly policies: readonly PolicySurvey[];
  /** The first of the groups that are not counted, and how many there are. */
  readonly uncounted: readonly Uncounted[];
  readonly uncountedGroups: number;
  /** One for each node of the map; a text says why it could not be asked. */
  readonly nodes: readonly { readonly node: NodeId; readonly said: NodeScrub | string }[];
  /** Nodes whose volumes were not read to their end in this pass, or that did not answer; not those written off. */
  readonly unread: readonly NodeId[];
  /** Every group was counted once, by the primary and with the members it has now, and every volume was read. */
  readonly complete: boolean;
  /** Complete, and every copy was as it should be. */
  readonly clean: boolean;
  readonly lastComplete: Completion | undefined;
}

/** Groups named in a survey; of more only the number is told. */
export const MAX_UNCOUNTED = 256;
const CALL_MS = 10_000;
/** Tries to hear all nodes at one revision of the map. */
const TRIES = 4;

export interface SurveySeams {
  readonly clock: Clock;
  readonly map: LocalMap;
  readonly link: (node: NodeId) => Link;
}

/**
 * Asks every node how far it is with the latest pass, and puts together what they say. A pass to begin goes with the
 * question; when it turns out to be complete, all are told.
 */
export async function survey(seams: SurveySeams, options: { readonly pass?: Pass } = {}): Promise<Survey> {
  const found = await surveyed(seams, options);
  const { pass, complete, clean, lastComplete, policies } = found;
  if (!complete || pass === undefined || lastComplete?.pass === pass.id) return found;
  const objects = policies.reduce((sum, { tally }) => sum + tally.objects.reduce((all, count) => all + count, 0), 0);
  const completion = { pass: pass.id, atMs: seams.clock.now(), objects, clean };
  await askAll(seams, seams.map.view, { completion });
  return { ...found, lastComplete: completion };
}

/** Nodes that have not heard of the latest pass do so on the way. */
async function surveyed(seams: SurveySeams, options: { readonly pass?: Pass }): Promise<Survey> {
  let request = options;
  for (let tries = 1; ; tries++) {
    const { view } = seams.map;
    const said = await askAll(seams, view, request);
    const pass = latest(said.map(({ said: one }) => (typeof one === 'string' ? undefined : one.pass)));
    const isNewsTo = said.some(({ said: one }) => typeof one !== 'string' && one.pass?.id !== pass?.id);
    if (pass !== undefined && isNewsTo) {
      request = { pass };
      if (tries < TRIES) continue;
    }
    const newest = Math.max(
      view.revision,
      ...said.map(({ said: one }) => (typeof one === 'string' ? 0 : one.revision)),
    );
    if (newest === view.revision || tries === TRIES) return combine(view, said);
    await seams.map.readThrough(newest);
  }
}

async function askAll(
  { link }: SurveySeams,
  view: MapView,
  request: { pass?: Pass; completion?: Completion },
): Promise<Survey['nodes']> {
  const message = encodeScrubRequest({ revision: view.revision, ...request });
  return await Promise.all(
    view.nodes().map(async (node) => {
      try {
        return { node, said: decodeNodeScrub(await link(node).call(VERB.SCRUB, message, { deadlineMs: CALL_MS })) };
      } catch (error) {
        return { node, said: messageOf(error) };
      }
    }),
  );
}

/**
 * Puts together what nodes say. Pure; believes nobody more than they say: a group counts only if exactly one node says
 * that it counted it in this pass, and all who speak go by the same map.
 */
export function combine(view: MapView, nodes: Survey['nodes']): Survey {
  const answers = nodes.map(({ said }) => said).filter((said) => typeof said !== 'string');
  const pass = latest(answers.map((answer) => answer.pass));
  const inPass = answers.filter((answer) => pass !== undefined && answer.pass?.id === pass.id);
  const policies = view.map.policies.map(({ id, copies }): PolicySurvey => {
    const tally = emptyTally();
    for (const answer of inPass) {
      for (const part of answer.policies) if (part.policy === id) addTally(tally, part.tally);
    }
    return { policy: id, copies, groups: 2 ** view.map.groupBits, counted: 0, tally };
  });
  const counts = new Map(policies.map(({ policy }) => [policy, 0]));
  const uncounted: Uncounted[] = [];
  let uncountedGroups = 0;
  for (const group of allGroups(view.map)) {
    const why = whyNotCounted(view, group, { inPass, nodes, pass });
    if (why === undefined) counts.set(group.policy, counts.get(group.policy)! + 1);
    else {
      uncountedGroups++;
      if (uncounted.length < MAX_UNCOUNTED) uncounted.push({ ...group, why });
    }
  }
  const unread = nodes.filter(({ node, said }) => !view.map.out.includes(node) && !hasReadAll(said, pass));
  const isOneMap = answers.every(({ revision }) => revision === view.revision);
  const complete = pass !== undefined && uncountedGroups === 0 && unread.length === 0 && isOneMap;
  return {
    pass,
    policies: policies.map((one) => ({ ...one, counted: counts.get(one.policy)! })),
    uncounted,
    uncountedGroups,
    nodes,
    unread: unread.map(({ node }) => node),
    complete,
    clean: complete && policies.every(({ tally, copies }) => isClean(tally, copies)),
    lastComplete: latest(answers.map(({ completion }) => completion)),
  };
}

function hasReadAll(said: NodeScrub | string, pass: Pass | undefined): boolean {
  return typeof said !== 'string' && said.pass?.id === pass?.id && said.volumes.done;
}

function latest<T extends Pass | Completion>(each: readonly (T | undefined)[]): T | undefined {
  let last: T | undefined;
  const nameOf = (one: Pass | Completion): number => ('id' in one ? one.id : one.pass);
  for (const one of each) if (one !== undefined && (last === undefined || nameOf(one) > nameOf(last))) last = one;
  return last;
}

/** Everything has exactly as many good copies as it should have, and nothing else was found. */
export function isClean(tally: Tally, copies: number): boolean {
  const isFull = (counts: readonly number[]): boolean => counts.every((count, n) => n >= copies || count === 0);
  const hasFound = Object.values(tally.found).some((count) => count > 0);
  return isFull(tally.objects) && isFull(tally.others) && !hasFound && tally.left === 0;
}

function hasBit(bits: Uint8Array, at: number): boolean {
  return ((bits[at >>> 3] ?? 0) & (1 << (at & 7))) !== 0;
}

/** Undefined: it is counted. */
function whyNotCounted(
  view: MapView,
  group: GroupKey,
  said: { inPass: readonly NodeScrub[]; nodes: Survey['nodes']; pass: Pass | undefined },
): string | undefined {
  if (said.pass === undefined) return 'no pass was ever begun';
  const by = said.inPass.filter((answer) =>
    answer.policies.some(({ policy, counted }) => policy === group.policy && hasBit(counted, group.group)),
  );
  if (by.length === 1) return undefined;
  if (by.length > 1) return `nodes ${by.map(({ node }) => node).join(', ')} counted it: its primary is changing`;
  const { primary, health } = view.group(group);
  if (primary === undefined) return `it has no primary: ${health}`;
  const answer = said.nodes.find(({ node }) => node === primary)?.said;
  if (typeof answer === 'string') return `node ${primary} does not answer: ${answer}`;
  if (answer?.pass?.id !== said.pass.id) return `node ${primary} has not begun the pass`;
  const reason = answer.reasons.find(({ policy, group: other }) => policy === group.policy && other === group.group);
  return reason?.why ?? 'not yet';
}
