import { type Clock, type GroupKey, type Log, type NodeId, type Random, WebdfsError } from '@webdfs/base';
import type { LocalMap } from '@webdfs/cluster';
import type { Link } from '@webdfs/wire';
import { RETRY_LIMITS, type RetryLimits } from './retry.ts';

export interface RouterLimits extends RetryLimits {
  /** A page that is not complete by then is answered UNAVAILABLE, milliseconds. */
  readonly listMs: number;
  /** One block, from its first byte to its commit. */
  readonly blockMs: number;
}

export const ROUTER_LIMITS: RouterLimits = { ...RETRY_LIMITS, listMs: 2_000, blockMs: 60_000 };

/** What a router works with. */
export interface RouterSeams {
  readonly map: LocalMap;
  readonly link: (node: NodeId) => Link;
  /** The node that this router runs in, if any: blocks that it holds are read without the network. */
  readonly self?: NodeId;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** The link to a group's primary. @throws NOT_PRIMARY where the map knows none */
export function primaryLink(seams: RouterSeams, group: GroupKey): Link {
  const { primary, health } = seams.map.view.group(group);
  if (primary === undefined) {
    throw new WebdfsError('NOT_PRIMARY', `group ${group.policy}/${group.group} has no primary now: it is ${health}`);
  }
  return seams.link(primary);
}
