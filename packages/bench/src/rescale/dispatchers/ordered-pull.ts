import type { NodeId } from '@webdfs/base';
import { type IOEvent, PullDispatcher, type PullLimits } from '@webdfs/rescale';
import type { IODispatcher } from '../parts.ts';

/** The nodes that an event belongs to. */
function placeOf(event: IOEvent, nodes: readonly NodeId[]): readonly NodeId[] {
  switch (event.type) {
    case 'asked':
    case 'sent':
      return [event.transfer.from];
    case 'received':
    case 'written':
      return [event.transfer.to];
    case 'read':
      return [event.node];
    case 'started':
    case 'woke':
      return nodes;
  }
}

/** WebDFS's own: every receiver pulls in the order of the plan, a window at a time. */
export function orderedPull(limits: PullLimits): IODispatcher {
  return {
    name: 'ordered pull',
    open(transfers, nodes) {
      const dispatchers = new Map(nodes.map((node) => [node, new PullDispatcher(node, transfers, limits)]));
      return { step: (event) => placeOf(event, nodes).flatMap((node) => dispatchers.get(node)!.step(event)) };
    },
  };
}
