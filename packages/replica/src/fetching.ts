import { equalBytes, type GroupKey, type NodeId, type Sequence, toHex, WebdfsError } from '@webdfs/base';
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
  /** Says what is gone. */
  readonly primary: NodeId;
  /** Members that may have it, the primary among them, the one to be asked first. */
  readonly sources: readonly NodeId[];
  readonly signal: AbortSignal;
}

/** One call waits for its turn where the source may send only so much. */
const CALL_MS = 60_000;

/**
 * The entries of things, each from the first source that has it in the wanted version or a newer one, checksums verified.
 * Things that the primary does not have any more are left out.
 *
 * @throws CORRUPT if no source has an undamaged copy; the link's errors if none could be asked
 */
export async function* fetchEntries(
  host: ReplicaHost,
  wanted: readonly Wanted[],
  options: FetchOptions,
): AsyncGenerator<LogEntry[], void, void> {
  let left = wanted;
  while (left.length > 0) {
    const part = left.slice(0, MAX_FETCH_ITEMS);
    const answers = await askFirst(host, part, options);
    const entries: LogEntry[] = [];
    const missing: Wanted[] = [];
    for (const [i, answer] of answers.entries()) {
      if (answer.state === 'entry' && answer.entry.sequence >= part[i]!.sequence) entries.push(answer.entry);
      else missing.push(part[i]!);
    }
    entries.push(...(await fromPrimary(host, missing, options)));
    left = left.slice(answers.length);
    yield entries;
  }
}

/** What the first source says; where it cannot be asked, everything is still to be found. */
async function askFirst(host: ReplicaHost, wanted: readonly Wanted[], options: FetchOptions): Promise<Fetched[]> {
  const [first = options.primary] = options.sources;
  try {
    return await ask(host, first, wanted, options.signal);
  } catch (error) {
    if (first === options.primary || options.signal.aborted || !(error instanceof WebdfsError)) throw error;
    return wanted.map(() => ({ state: 'absent' }));
  }
}

/** What the primary has of things, in the version it has now. Where its copy is damaged, another member's. */
async function fromPrimary(host: ReplicaHost, wanted: readonly Wanted[], options: FetchOptions): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for (let left = wanted; left.length > 0;) {
    const answers = await ask(host, options.primary, left, options.signal);
    for (const [i, answer] of answers.entries()) {
      if (answer.state === 'entry') entries.push(answer.entry);
      else if (answer.state === 'damaged') entries.push(await fromOther(host, left[i]!, options));
    }
    left = left.slice(answers.length);
  }
  return entries;
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

async function fromOther(
  host: ReplicaHost,
  wanted: Wanted,
  { primary, sources, signal }: FetchOptions,
): Promise<LogEntry> {
  for (const node of sources) {
    if (node === primary) continue;
    try {
      const [other] = await ask(host, node, [wanted], signal);
      if (other?.state === 'entry' && other.entry.sequence >= wanted.sequence) return other.entry;
    } catch (error) {
      if (signal.aborted || !(error instanceof WebdfsError)) throw error;
    }
  }
  throw new WebdfsError('CORRUPT', `no member has an undamaged ${wanted.item.type} ${toHex(wanted.item.id)}`);
}

/**
 * FETCH_KEYS at the member that is asked: the answer, and the group of the first thing, which is that of all.
 *
 * @throws CORRUPT, TOO_LARGE, INVALID
 */
export async function serveKeys(
  host: Pick<ReplicaHost, 'store' | 'moves'>,
  message: Message,
): Promise<{ readonly group: GroupKey; readonly answer: Message }> {
  const items = decodeVerifyRequest(message);
  const [group] = items;
  if (group === undefined) throw new WebdfsError('INVALID', 'nothing was asked for');
  const fetched = await fetchKeys(host.store, items);
  for (const answer of fetched) if (answer.state === 'entry') host.moves.sent(answer.entry.body.length);
  return { group, answer: encodeFetched(fetched) };
}
