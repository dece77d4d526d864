import { createHash } from 'node:crypto';
import { codeOf, SeededRandom, sleep, type Clock } from '@webdfs/base';
import type { S3Client } from '@webdfs/webdfs/remote';
import { mixedSizes } from './object-mix.ts';

export interface StoredLoad {
  readonly objects: number;
  readonly bytes: number;
  readonly seconds: number;
}

const UPLOADS_AT_ONCE = 4;
const TRIES = 8;
const PAUSE_MS = 500;

/** Bytes that do not compress and differ from object to object; the same for the same seed. */
function bodyOf(seed: number, index: number, size: number): Uint8Array {
  return new SeededRandom(seed * 1_000_003 + index).bytes(size);
}

async function put(client: S3Client, clock: Clock, request: Parameters<S3Client['call']>[0]): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await client.call(request);
      return;
    } catch (error) {
      if (tries === TRIES || codeOf(error) === undefined) throw error;
      await sleep(clock, PAUSE_MS * tries, request.signal);
    }
  }
}

/** Puts mixed objects into a bucket that is there: step two, the data that moves. */
export async function storeLoad(options: {
  readonly client: S3Client;
  readonly bucket: string;
  readonly bytes: number;
  readonly seed: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onProgress: (what: string) => void;
}): Promise<StoredLoad> {
  const { client, bucket, seed, clock, signal, onProgress } = options;
  const sizes = mixedSizes(options.bytes);
  const began = clock.monotonic();
  let next = 0;
  let bytes = 0;
  const worker = async (): Promise<void> => {
    while (next < sizes.length) {
      const index = next++;
      const size = sizes[index]!;
      const body = bodyOf(seed, index, size);
      const payloadHash = createHash('sha256').update(body).digest('hex');
      await put(client, clock, { method: 'PUT', bucket, key: `load/${index}`, body, payloadHash, signal });
      bytes += size;
      if (index % 50 === 0) onProgress(`storing, ${index} of ${sizes.length} objects`);
    }
  };
  await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, worker));
  return { objects: sizes.length, bytes, seconds: (clock.monotonic() - began) / 1_000 };
}
