import { asPolicyId, type Clock, concat, SeededRandom, systemClock } from '@webdfs/base';
import type { BucketAnnouncer } from './buckets.ts';
import type { Groups } from './groups.ts';
import { MemoryGroups } from './memory-groups.ts';
import { ObjectLayer } from './object-layer.ts';
import type { GetResult, ObjectFacts } from './object-store.ts';

/** Facts of an object nobody says anything about. */
export const NO_FACTS: ObjectFacts = { headers: {}, user: {} };

/** Large things on a small scale: an object of 1 KiB has several blocks, a part of 64 bytes is large enough. */
export const SMALL = { blockBytes: 256, inlineBytes: 100, maxPutBytes: 10_000, minPartBytes: 64 };

/** An object layer over groups in memory, with small sizes unless told otherwise. */
export function aLayer(
  options: {
    groups?: Groups;
    clock?: Clock;
    seed?: number;
    sizes?: Partial<typeof SMALL>;
    announceBucket?: BucketAnnouncer;
  } = {},
): ObjectLayer {
  const { groups = new MemoryGroups(), clock = systemClock, seed = 1, sizes, announceBucket } = options;
  return new ObjectLayer({
    groups,
    policy: asPolicyId(1),
    clock,
    random: new SeededRandom(seed),
    sizes: { ...SMALL, ...sizes },
    ...(announceBucket && { announceBucket }),
  });
}

/** All bytes of a result; its pieces are released. */
export async function bytesOf({ body }: Pick<GetResult, 'body'>): Promise<Uint8Array> {
  if (body instanceof Uint8Array) return body.slice();
  const parts: Uint8Array[] = [];
  for await (const piece of body) {
    parts.push(piece.bytes.slice());
    piece.release();
  }
  return concat(parts);
}

/** Bytes as a stream in chunks of at most `most`. */
export async function* streamed(bytes: Uint8Array, most = 97): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += most) {
    await Promise.resolve();
    yield bytes.slice(at, at + most);
  }
}
