import { type NodeId, Reader, Writer } from '@webdfs/base';
import type { LocalMap } from '@webdfs/cluster';
import { FIRST_FREE_VERB } from '@webdfs/replica';
import { type Link, type Message, NO_ATTACHMENT } from '@webdfs/wire';

/** call: a bucket has changed; the answer comes when nothing at that node trusts the old one any more. */
export const BUCKET_CHANGED = FIRST_FREE_VERB;

const ANNOUNCE_MS = 1_500;

export function encodeBucketChanged(name: string): Message {
  return { head: new Writer(64).text(name).take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT */
export function decodeBucketChanged(message: Message): string {
  const reader = new Reader(message.head);
  const name = reader.text();
  reader.end();
  return name;
}

/** Tells every other live node's gateway that a bucket has changed; true once all have said that they know. */
export async function announceBucket(
  name: string,
  seams: { readonly self: NodeId; readonly map: LocalMap; readonly link: (node: NodeId) => Link },
): Promise<boolean> {
  const { view } = seams.map;
  const others = view.nodes().filter((node) => node !== seams.self && view.live(node) !== undefined);
  const answers = await Promise.allSettled(
    others.map((node) => seams.link(node).call(BUCKET_CHANGED, encodeBucketChanged(name), { deadlineMs: ANNOUNCE_MS })),
  );
  // a node without a session may still have a gateway that runs: only its own cache's time helps there
  const allLive = others.length === view.nodes().length - 1;
  return allLive && answers.every((answer) => answer.status === 'fulfilled');
}
