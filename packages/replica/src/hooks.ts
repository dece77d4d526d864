import type { GroupKey, NodeId } from '@webdfs/base';

/** What the engine tells those it works for. All are called inside a turn: they must not block, and may call back later. */
export interface EngineHooks {
  /** This node began to serve a group as its primary, or ceased to. */
  serving?(group: GroupKey, serving: boolean): void;
  /** The learner of a group of this primary was given up: it must begin anew. */
  learnerLost?(group: GroupKey, node: NodeId, why: string): void;
  /** The learner was not added, surely; it goes on learning and may be offered again. */
  learnerRefused?(group: GroupKey, node: NodeId): void;
  /** A member comes no further and too few would remain without it: the controller must judge (W9). */
  complain?(group: GroupKey, node: NodeId, what: string): void;
  /** This node's disk lacks what it had: it must register as a new one (T6). */
  diskIsOld?(group: GroupKey): void;
  /** The node must stop: the disk has failed, or an invariant is broken. */
  fatal?(error: unknown): void;
}
