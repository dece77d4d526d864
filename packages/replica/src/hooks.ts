import type { GroupKey, NodeId, Revision } from '@webdfs/base';
import type { ProtocolMessage } from './messages.ts';

/** What a node does as a learner; learner.ts is its house. */
export interface LearnerPort {
  /** From the primary of a group of which this node is no member in sync, under the ballot of this node's map. */
  message(from: NodeId, session: Revision, message: ProtocolMessage): void;
  /** The group has made this node a member: nothing of the learner's is on its way to the disk when this resolves. */
  release(group: GroupKey): Promise<void> | undefined;
}

/** What the engine tells the node it belongs to. */
export interface EngineHooks {
  readonly learner?: LearnerPort;
  /** This node began to serve a group as its primary, or ceased to. */
  serving?(group: GroupKey, serving: boolean): void;
  /** A learner of a group of this primary was given up; `refused`: it was not added, but goes on learning. */
  learnerLost?(group: GroupKey, node: NodeId, why: string): void;
  learnerRefused?(group: GroupKey, node: NodeId): void;
  /** For the controller (W9). */
  complain?(group: GroupKey, node: NodeId, what: string): void;
  /** This node's disk lacks what it had: it must register as a new one (T6). */
  diskIsOld?(group: GroupKey): void;
  /** The node must stop: the disk has failed, or an invariant is broken. */
  fatal?(error: unknown): void;
}
