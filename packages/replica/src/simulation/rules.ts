import { asGroupId, asPolicyId, type GroupKey } from '@webdfs/base';
import type { GroupView } from '@webdfs/cluster';
import type { ProtocolMessage } from '../messages.ts';
import type { GroupState } from '../state.ts';

/** The one group that is simulated. */
export const GROUP: GroupKey = { policy: asPolicyId(1), group: asGroupId(0) };

/** Rules that a run may break on purpose, to see that the checks would notice. */
export interface Rules {
  /** Every request looks new (S5). */
  readonly noRequestTable: boolean;
  /** Disks said that they synced what a crash then takes away (W6). */
  readonly lyingDisks: boolean;
  /** What nodes believe of the group. */
  readonly viewOf: (view: GroupView) => GroupView;
  /** Before a node takes a message. */
  readonly beforeMessage: (node: { readonly state: GroupState | undefined }, message: ProtocolMessage) => void;
  /** Nodes believe their lease for ever (L3). */
  readonly endlessLeases: boolean;
  /** New primaries wait for nobody (L7). */
  readonly noFence: boolean;
}

const same = (view: GroupView): GroupView => view;

export const KEPT: Rules = {
  noRequestTable: false,
  lyingDisks: false,
  viewOf: same,
  beforeMessage: () => undefined,
  endlessLeases: false,
  noFence: false,
};

/** A view made from another, the same one each time: identity tells that nothing changed. */
export function remembered(change: (view: GroupView) => GroupView): (view: GroupView) => GroupView {
  const made = new WeakMap<GroupView, GroupView>();
  return (view) => {
    let other = made.get(view);
    if (other === undefined) {
      other = change(view);
      made.set(view, other);
    }
    return other;
  };
}
