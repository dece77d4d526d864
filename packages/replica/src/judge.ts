import type { NodeId, Revision } from '@webdfs/base';
import { type GroupView, revisionOf } from '@webdfs/cluster';
import type { ProtocolMessage } from './messages.ts';

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
  if (message.type === 'stale') return 'catch-up';
  if (message.ballot !== view.ballot) {
    if (revisionOf(message.ballot) > revision) return 'newer';
    // Whatever this node served before, its map shows that ballot or a later configuration.
    if (message.type === 'release') return 'released';
    return isQuestion(message) ? 'stale' : 'drop';
  }
  switch (message.type) {
    case 'query':
    case 'sync':
    case 'append':
    case 'commit':
    case 'lost':
      return view.primary === from && from !== self ? 'take' : 'drop';
    case 'release':
      return 'released';
    case 'tail':
    case 'ack':
    case 'not-synced':
    case 'released':
      return view.primary === self ? 'take' : 'drop';
  }
}

/** Only what a primary says is answered with a refusal: refusals of refusals would never end. */
function isQuestion({ type }: ProtocolMessage): boolean {
  return type === 'query' || type === 'sync' || type === 'append' || type === 'commit';
}
