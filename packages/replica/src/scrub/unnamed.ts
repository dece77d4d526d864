import { type GroupKey, type NodeId, WebdfsError } from '@webdfs/base';
import { groupOf, hashKey } from '@webdfs/placement';
import { REQUEST_ID_BYTES } from '@webdfs/store';
import { unpackBlockOwner } from '../block-codec.ts';
import { fromAny } from '../block-transfer.ts';
import { fetchEntry } from '../entry-fetch.ts';
import { decodeVerdicts, encodeNamed } from '../garbage-codec.ts';
import { ATTEMPT_BYTES } from '../record.ts';
import type { ReplicaHost } from '../replica-host.ts';
import { VERB } from '../verbs.ts';

const CALL_MS = 30_000;

/**
 * Whether a block that some members have is garbage for sure: the primary of its key has committed that no record names it
 * or ever will. False too where nobody can say.
 */
export async function isGone(
  host: ReplicaHost,
  group: GroupKey,
  block: { readonly id: Uint8Array; readonly holders: readonly NodeId[]; readonly signal: AbortSignal },
): Promise<boolean> {
  const { id, holders, signal } = block;
  const { map } = host;
  try {
    const what = { type: 'block', key: id } as const;
    const entry = await fromAny(holders, (node) => fetchEntry(host.link(node), group, what));
    const { key, uploadId } = unpackBlockOwner(entry.meta.subarray(REQUEST_ID_BYTES));
    const home = { policy: group.policy, group: groupOf(hashKey(key).high, map.view.map.groupBits) };
    const { primary } = map.view.group(home);
    if (primary === undefined) return false;
    const question = { ...home, key, uploadId, attempt: id.subarray(0, ATTEMPT_BYTES) };
    const message = encodeNamed([question], map.view.revision);
    const answer = await host.link(primary).call(VERB.NAMED, message, { deadlineMs: CALL_MS, signal });
    return decodeVerdicts(answer)[0] === 'gone';
  } catch (error) {
    if (!(error instanceof WebdfsError) || signal.aborted) throw error;
    return false;
  }
}
