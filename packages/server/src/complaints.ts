import { asNodeId, type NodeId, Reader, Writer } from '@webdfs/base';
import type { Complaint, LocalMap, RunningController } from '@webdfs/cluster';
import { FIRST_FREE_VERB } from '@webdfs/replica';
import { type Link, type Message, NO_ATTACHMENT } from '@webdfs/wire';

/** post: one node says of another that it does not answer. Whoever is no controller any more ignores it. */
export const COMPLAIN = FIRST_FREE_VERB + 1;

/** @throws CORRUPT */
export function decodeComplaint(message: Message, from: NodeId): Complaint {
  const reader = new Reader(message.head);
  const about = asNodeId(reader.u16());
  const below = reader.u8() === 1;
  reader.end();
  return { from, about, below };
}

/** Takes a complaint to the controller, wherever that runs now; lost if there is none: it is repeated while it holds. */
export function complain(
  complaint: Complaint,
  seams: {
    readonly self: NodeId;
    readonly map: LocalMap;
    readonly link: (node: NodeId) => Link;
    readonly controller: RunningController | undefined;
  },
): void {
  const controller = seams.map.view.controller()?.info.node;
  if (controller === undefined) return;
  if (controller === seams.self) {
    seams.controller?.complain(complaint);
    return;
  }
  const head = new Writer(8)
    .u16(complaint.about)
    .u8(complaint.below ? 1 : 0)
    .take();
  seams.link(controller).post(COMPLAIN, { head, attached: NO_ATTACHMENT });
}
