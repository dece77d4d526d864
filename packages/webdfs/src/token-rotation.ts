import { asNodeId, codeOf, messageOf, type NodeId, type Random, toHex, WebdfsError } from '@webdfs/base';
import { formatDocument, MAP_KEY } from '@webdfs/cluster';
import { FIRST_FREE_VERB } from '@webdfs/replica';
import { type Message, NO_ATTACHMENT } from '@webdfs/wire';
import type { ClusterAccess } from './cluster-access.ts';
import { MAX_OTHERS, type SecretKeeper, type SecretSet } from './secret-keeper.ts';
import { seal, unseal } from './token-seal.ts';
import { secretName } from './token.ts';

/**
 * Changing the cluster secret while everything runs. First all nodes learn to accept the new one, then all begin to use it;
 * the old one is accepted until the overlap is over, so that nodes that were away can come back. Each step may be repeated.
 */

export interface TokenReport {
  /** Which secret this node uses, telling nothing about it. */
  readonly name: string;
  /** Others that it accepts, and until when. */
  readonly others: readonly { readonly name: string; readonly until: string }[];
  /** Which secret each node uses; `why` it did not say. */
  readonly nodes: readonly { readonly node: number; readonly name?: string; readonly why?: string }[];
}

/** call: what a node's secrets are to be, or which it has. */
export const SECRETS = FIRST_FREE_VERB + 3;

type Parameter = (name: string) => string | undefined;
type Told = { readonly type: 'ask' } | ({ readonly type: 'take' } & SecretSet);

const ASK_MS = 5_000;
const HOUR_MS = 3_600_000;
const OVERLAP_HOURS = { usual: 24, least: 1, most: 24 * 90 } as const;
const SECRET = /^[0-9a-f]{64}$/;
const TRIES = 5;

function isSet(value: object): value is SecretSet {
  const present: unknown = Reflect.get(value, 'clusterSecret');
  const others: unknown = Reflect.get(value, 'otherSecrets');
  if (typeof present !== 'string' || !SECRET.test(present)) return false;
  if (!Array.isArray(others) || others.length > MAX_OTHERS) return false;
  return others.every((other: unknown) => {
    if (typeof other !== 'object' || other === null) return false;
    const secret: unknown = Reflect.get(other, 'secret');
    return typeof secret === 'string' && SECRET.test(secret) && Number.isSafeInteger(Reflect.get(other, 'untilMs'));
  });
}

/** Answers another node's question or word about secrets. @throws ACCESS_DENIED, CORRUPT, as `take` */
export async function answerSecrets(keeper: SecretKeeper, random: Random, { head }: Message): Promise<Message> {
  const { value: told, secret } = unseal(head, keeper.accepted);
  if (typeof told !== 'object' || told === null) throw new WebdfsError('CORRUPT', 'no word about secrets');
  if (Reflect.get(told, 'type') === 'take') {
    if (!isSet(told)) throw new WebdfsError('CORRUPT', 'no set of secrets');
    const { clusterSecret, otherSecrets } = told;
    await keeper.take({ clusterSecret, otherSecrets });
  }
  return { head: seal({ name: secretName(keeper.set) }, secret, random), attached: NO_ATTACHMENT };
}

type Answers = Map<NodeId, string | WebdfsError>;

/**
 * Says something to one node; gives the name of the secret that it uses then. A node that was away while the secret was
 * changed knows an older one of those that are still accepted: each is tried.
 */
async function tell(
  { link, random }: ClusterAccess,
  node: NodeId,
  told: Told,
  accepted: readonly string[],
): Promise<string> {
  let refusal: unknown;
  for (const secret of accepted) {
    try {
      const message = { head: seal(told, secret, random), attached: NO_ATTACHMENT };
      const { head } = await link(node).call(SECRETS, message, { deadlineMs: ASK_MS });
      const { value } = unseal(head, [secret]);
      return String((value as { name?: unknown }).name);
    } catch (error) {
      if (codeOf(error) !== 'ACCESS_DENIED') throw error;
      refusal = error;
    }
  }
  throw refusal;
}

/** Says the same to all nodes, to this one last; gives what each answered. */
async function tellAll(access: ClusterAccess, told: Told): Promise<Answers> {
  const { self, keeper } = access;
  const answers: Answers = new Map();
  const { accepted } = keeper;
  const others = access.map.view.nodes().filter((node) => node !== self);
  await Promise.all(
    others.map(async (node) => {
      try {
        answers.set(node, await tell(access, node, told, accepted));
      } catch (error) {
        if (!(error instanceof WebdfsError)) throw error;
        answers.set(node, error);
      }
    }),
  );
  if (told.type === 'take') {
    const { clusterSecret, otherSecrets } = told;
    await keeper.take({ clusterSecret, otherSecrets });
  }
  answers.set(self, secretName(keeper.set));
  return answers;
}

function reportOf({ keeper }: ClusterAccess, answers: Answers): TokenReport {
  const { otherSecrets } = keeper.set;
  return {
    name: secretName(keeper.set),
    others: otherSecrets.map(({ secret, untilMs }) => ({
      name: secretName({ clusterSecret: secret }),
      until: new Date(untilMs).toISOString(),
    })),
    nodes: [...answers]
      .toSorted(([a], [b]) => a - b)
      .map(([node, answer]) =>
        typeof answer === 'string' ? { node, name: answer } : { node, why: messageOf(answer) },
      ),
  };
}

/** Which secrets the nodes use. */
export async function tokenReport(access: ClusterAccess): Promise<TokenReport> {
  return reportOf(access, await tellAll(access, { type: 'ask' }));
}

function overlapOf(parameter: Parameter): number {
  const hours = Number(parameter('overlap-hours') ?? OVERLAP_HOURS.usual);
  const { least, most } = OVERLAP_HOURS;
  if (!Number.isInteger(hours) || hours < least || hours > most) {
    throw new WebdfsError('INVALID', `an overlap of ${hours} hours: ${least} to ${most} are possible`);
  }
  return hours * HOUR_MS;
}

/** @throws UNAVAILABLE naming those that did not answer, unless they may be missing */
function requireAll(answers: Answers, without: readonly NodeId[]): void {
  const silent = [...answers].filter(([node, answer]) => typeof answer !== 'string' && !without.includes(node));
  if (silent.length === 0) return;
  const names = silent.map(([node, answer]) => `node ${node}: ${messageOf(answer)}`).join('; ');
  throw new WebdfsError(
    'UNAVAILABLE',
    `the token stays: not every node knows the new one (${names}); ask again, or leave nodes out with --without`,
  );
}

/** The map tells those who join which secret it is. */
async function nameInMap({ map, mapStore }: ClusterAccess, name: string): Promise<void> {
  for (let i = 0; i < TRIES; i++) {
    const view = await map.readThrough(await mapStore.fresh(map.view.revision));
    if (view.map.secret === name || view.map.secret === undefined) return;
    const { done } = await map.transact({
      compare: [{ type: 'modified', key: MAP_KEY, is: view.mapRevision }],
      write: [{ type: 'put', key: MAP_KEY, value: formatDocument({ ...view.map, secret: name }) }],
    });
    if (done) return;
  }
  throw new WebdfsError('CONFLICT', 'the map changed all the time: ask again');
}

/** @throws UNAVAILABLE if a node does not answer that may not be missing, INVALID, as `take` */
async function rotate(access: ClusterAccess, parameter: Parameter): Promise<TokenReport> {
  const { keeper, random, clock } = access;
  const untilMs = clock.now() + overlapOf(parameter);
  const without = (parameter('without') ?? '')
    .split(',')
    .filter((word) => word !== '')
    .map((word) => asNodeId(Number(word)));
  const { clusterSecret, otherSecrets } = keeper.set;
  // one that was made before, and did not come to be used, is taken up again
  const begun = otherSecrets.find(({ isNext }) => isNext === true)?.secret;
  const next = begun ?? toHex(random.bytes(32));
  const rest = otherSecrets.filter(({ isNext }) => isNext !== true).slice(0, MAX_OTHERS - 1);
  const accepting = { clusterSecret, otherSecrets: [{ secret: next, untilMs, isNext: true }, ...rest] };
  requireAll(await tellAll(access, { type: 'take', ...accepting }), without);
  const used = { clusterSecret: next, otherSecrets: [{ secret: clusterSecret, untilMs }, ...rest] };
  const answers = await tellAll(access, { type: 'take', ...used });
  await nameInMap(access, secretName({ clusterSecret: next }));
  return reportOf(access, answers);
}

/** `action` is `rotate` (with `overlap-hours`, `without`), or `end`: only the present secret is accepted from now on. */
export async function changeToken(access: ClusterAccess, parameter: Parameter): Promise<TokenReport> {
  const action = parameter('action');
  if (action === 'rotate') return await rotate(access, parameter);
  if (action !== 'end') throw new WebdfsError('INVALID', `action ${action} is none of rotate, end`);
  const { clusterSecret } = access.keeper.set;
  return reportOf(access, await tellAll(access, { type: 'take', clusterSecret, otherSecrets: [] }));
}
