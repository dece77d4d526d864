import { equalBytes, type NodeId, type Sequence, toHex, WebdfsError } from '@webdfs/base';
import { KIND, type LogEntry } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { decodeFetched, encodeFetched, type Fetched, type FetchItem, MAX_FETCH_ITEMS } from './fetch-codec.ts';
import { fetchKeys } from './learner-pages.ts';
import type { ReplicaHost } from './replica-host.ts';
import { decodeVerifyRequest, encodeVerifyRequest } from './verify-codec.ts';
import { VERB } from './verbs.ts';

/** What is wanted: a thing, and the version that is known to exist. */
export interface Wanted {
  readonly item: FetchItem;
  readonly sequence: Sequence;
}

export interface FetchOptions {
  /** Members that may have it, the primary first. */
  readonly sources: readonly NodeId[];
  readonly signal: AbortSignal;
}

const CALL_MS = 20_000;

/**
 * The entries of things, each from the first source that has it in the wanted version or a newer one, checksums verified.
 * Things that the first source, the primary, does not have any more are left out.
 *
 * @throws CORRUPT if no source has an undamaged copy; the link's errors if none could be asked
 */
export async function* fetchEntries(
  host: ReplicaHost,
  wanted: readonly Wanted[],
  { sources, signal }: FetchOptions,
): AsyncGenerator<LogEntry[], void, void> {
  let left = wanted;
  while (left.length > 0) {
    const part = left.slice(0, MAX_FETCH_ITEMS);
    const answers = await ask(host, sources[0]!, part, signal);
    const entries: LogEntry[] = [];
    for (const [i, answer] of answers.entries()) {
      const entry = await judged(host, part[i]!, answer, { sources: sources.slice(1), signal });
      if (entry !== undefined) entries.push(entry);
    }
    left = left.slice(answers.length);
    yield entries;
  }
}

async function ask(
  host: ReplicaHost,
  node: NodeId,
  wanted: readonly Wanted[],
  signal: AbortSignal,
): Promise<Fetched[]> {
  const message = encodeVerifyRequest(wanted.map(({ item }) => item));
  const answer = await host.link(node).call(VERB.FETCH_KEYS, message, { deadlineMs: CALL_MS, signal });
  const fetched = decodeFetched(answer);
  if (fetched.length === 0 || fetched.length > wanted.length) {
    throw new WebdfsError('CORRUPT', `node ${node} answered ${fetched.length} of ${wanted.length} things`);
  }
  for (const [i, one] of fetched.entries()) if (one.state === 'entry') checkIsWanted(one.entry, wanted[i]!);
  return fetched;
}

function checkIsWanted(entry: LogEntry, { item }: Wanted): void {
  const kind = item.type === 'record' ? KIND.RECORD : KIND.BLOCK;
  const fits = entry.kind === kind && entry.policy === item.policy && entry.group === item.group;
  if (!fits || !equalBytes(entry.key, item.id)) throw new WebdfsError('CORRUPT', 'another entry than was asked for');
}

/** The primary's answer; where its copy is damaged, another member's. */
async function judged(
  host: ReplicaHost,
  wanted: Wanted,
  answer: Fetched,
  { sources, signal }: FetchOptions,
): Promise<LogEntry | undefined> {
  if (answer.state === 'entry') return answer.entry;
  if (answer.state === 'absent') return undefined;
  for (const node of sources) {
    try {
      const [other] = await ask(host, node, [wanted], signal);
      if (other?.state === 'entry' && other.entry.sequence >= wanted.sequence) return other.entry;
    } catch (error) {
      if (signal.aborted || !(error instanceof WebdfsError)) throw error;
    }
  }
  throw new WebdfsError('CORRUPT', `no member has an undamaged ${wanted.item.type} ${toHex(wanted.item.id)}`);
}

/** FETCH_KEYS at the member that is asked. @throws CORRUPT, TOO_LARGE, INVALID */
export async function serveKeys(host: Pick<ReplicaHost, 'store' | 'moves'>, message: Message): Promise<Message> {
  const items = decodeVerifyRequest(message);
  if (items.length === 0) throw new WebdfsError('INVALID', 'nothing was asked for');
  const fetched = await fetchKeys(host.store, items);
  for (const answer of fetched) if (answer.state === 'entry') host.moves.sent(answer.entry.body.length);
  return encodeFetched(fetched);
}
