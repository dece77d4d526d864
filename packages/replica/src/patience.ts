import type { NodeId } from '@webdfs/base';
import type { LocalMap } from '@webdfs/cluster';
import type { ReplicaParameters } from './parameters.ts';

/**
 * How long a member may owe a group something before it is dropped from it (W9). A node that is silent as a whole has
 * `memberMs`. One that answers other groups is busy, not gone: thousands of groups may be taken over at once, and to drop it
 * from each that waits would cost a write and a catching up per group. One without a session is the controller's to judge,
 * with one write for all its groups; it is only dropped if nobody does.
 */
export class Patience {
  readonly #map: LocalMap;
  readonly #parameters: ReplicaParameters;
  readonly #heardAt = new Map<NodeId, number>();

  constructor(map: LocalMap, parameters: ReplicaParameters) {
    this.#map = map;
    this.#parameters = parameters;
  }

  /** Something of a node's engine has arrived. At most one entry a node. */
  heard(node: NodeId, at: number): void {
    this.#heardAt.set(node, at);
  }

  ms(node: NodeId, at: number): number {
    const { memberMs, busyMemberMs } = this.#parameters;
    if (this.#map.view.live(node) === undefined) return busyMemberMs;
    return at < (this.#heardAt.get(node) ?? -Infinity) + memberMs ? busyMemberMs : memberMs;
  }
}
