import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { WebdfsError } from '@webdfs/base';
import type { Contestant } from './sampling.ts';
import type { Shape } from './stripe.ts';

/** The native module for comparison, as far as it is used here. */
interface Ronomon {
  create(data: number, parity: number): object;
  encode(
    context: object,
    sources: number,
    targets: number,
    data: Buffer,
    dataOffset: number,
    dataBytes: number,
    parity: Buffer,
    parityOffset: number,
    parityBytes: number,
    done: (error?: Error) => void,
  ): void;
}

/**
 * The npm package @ronomon/reed-solomon, a native addon with SSSE3, from a folder in which it was installed.
 * @throws WebdfsError NOT_FOUND if it is not there or does not load
 */
export function loadRonomon(folder: string): Ronomon {
  try {
    return createRequire(resolve(folder, 'package.json'))('@ronomon/reed-solomon') as Ronomon;
  } catch (cause) {
    throw new WebdfsError('NOT_FOUND', `@ronomon/reed-solomon does not load from ${folder}`, { cause });
  }
}

/** Its encode of a whole stripe; it runs in the thread pool, whose CPU time counts too. */
export function ronomonEncode(ronomon: Ronomon, { data, parity }: Shape, shardBytes: number): Contestant {
  const context = ronomon.create(data, parity);
  const dataBuffer = Buffer.alloc(data * shardBytes, 0x5a);
  const parityBuffer = Buffer.alloc(parity * shardBytes);
  const bits = (from: number, count: number): number => ((1 << count) - 1) << from;
  return {
    name: '@ronomon/reed-solomon, encode',
    bytes: dataBuffer.length,
    run: () =>
      new Promise((resolve, reject) => {
        ronomon.encode(
          context,
          bits(0, data),
          bits(data, parity),
          dataBuffer,
          0,
          dataBuffer.length,
          parityBuffer,
          0,
          parityBuffer.length,
          (error) => (error === undefined || error === null ? resolve() : reject(error)),
        );
      }),
  };
}
