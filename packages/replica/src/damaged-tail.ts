import { type Clock, equalBytes, type GroupKey, type NodeId, sleep, WebdfsError } from '@webdfs/base';
import { type LocalMap, type Proposal, propose } from '@webdfs/cluster';
import { KIND, type Store } from '@webdfs/store';
import type { GroupState } from './state.ts';

/** What a node does about a group of which its own disk has lost what it had promised to hold. */
export interface LeavingSeams {
  readonly self: NodeId;
  readonly map: LocalMap;
  readonly store: Pick<Store, 'drop'>;
  readonly clock: Clock;
  readonly isStopped: () => boolean;
}

const TRIES = 10;
const AGAIN_MS = 200;

function proposalOf({ map, self }: LeavingSeams, key: GroupKey): Proposal | undefined {
  try {
    return propose(map.view, key, { type: 'drop', node: self, serving: false });
  } catch (error) {
    if (error instanceof WebdfsError) return undefined;
    throw error;
  }
}

/**
 * Leaves one group whose tail is damaged here, to learn it anew: the others go on. First the map, then the disk: a node that
 * is in sync nowhere owes nothing. What it had acknowledged the others hold, as each of them is in sync.
 *
 * @returns false if the others would be fewer than `minCopies`, or the map store does not answer: then the disk as a whole
 *   is an old one (protocol, T6)
 */
export async function leaveGroup(seams: LeavingSeams, key: GroupKey): Promise<boolean> {
  const { map, store, clock, self, isStopped } = seams;
  for (let tries = 0; tries < TRIES && !isStopped(); tries++) {
    if (!map.view.group(key).inSync.includes(self)) {
      await store.drop(key);
      return true;
    }
    const proposal = proposalOf(seams, key);
    if (proposal === undefined) return false;
    try {
      const { revision } = await map.transact(proposal.transaction);
      await map.readThrough(revision);
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      await sleep(clock, AGAIN_MS);
    }
  }
  return false;
}

/** Whether this primary has proposed a block that is not committed yet. */
export function isBlockInFlight({ primary, commit }: GroupState, id: Uint8Array): boolean {
  if (primary?.phase !== 'serve') return false;
  return primary.flight.some(
    ({ entry }) =>
      entry.kind === KIND.BLOCK && entry.sequence > commit && equalBytes(entry.key.subarray(0, id.length), id),
  );
}
