import type { NodeId, Revision } from '@webdfs/base';
import { type GroupView, revisionOf } from '@webdfs/cluster';
import type { ProtocolMessage } from './messages.ts';

/** What only the primary of a group says, to its members and its learner. */
export const FROM_PRIMARY: ReadonlySet<ProtocolMessage['type']> = new Set([
  'query',
  'sync',
  'append',
  'commit',
  'lost',
]);

/**
 * L5: what a node does with a message, by its own map alone.
 *
 * - take: the ballot is the map's, and the sender may say this under it
 * - newer: the map must be brought up to the message's ballot first
 * - stale: the sender's map is behind; it is told this node's revision
 * - released: a node that may have served an older ballot, and does not any more
 * - catch-up: the sender says that our own map is behind
 * - drop: nothing to be said
 */
export type Judgement = 'take' | 'newer' | 'stale' | 'released' | 'catch-up' | 'drop';

export interface Judging {
  readonly self: NodeId;
  readonly from: NodeId;
  /** Revision of this node's map. */
  readonly revision: Revision;
  readonly view: GroupView;
}

export function judge(message: ProtocolMessage, { self, from, revision, view }: Judging): Judgement {
  const { type, ballot } = message;
  if (type === 'stale') return 'catch-up';
  if (ballot !== view.ballot && revisionOf(ballot) > revision) return 'newer';
  // Whatever this node served before, its map shows that ballot or a later configuration.
  if (type === 'release') return 'released';
  const isSaidByPrimary = FROM_PRIMARY.has(type);
  // Only what a primary says is answered with a refusal: refusals of refusals would never end.
  if (ballot !== view.ballot) return isSaidByPrimary ? 'stale' : 'drop';
  const isRight = isSaidByPrimary ? view.primary === from && from !== self : view.primary === self;
  return isRight ? 'take' : 'drop';
}
