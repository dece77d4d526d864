import { workerData } from 'node:worker_threads';
import type { SharedKernel } from './kernel.ts';
import { joinKernel } from './open-kernel.ts';
import { ReedSolomon } from './reed-solomon.ts';

/** What a thread of the test is to do: encode the bytes [from, to) of shards that lie at these offsets, 4 + 2. */
export interface Errand {
  readonly shared: SharedKernel;
  readonly offsets: readonly number[];
  readonly from: number;
  readonly to: number;
}

const { shared, offsets, from, to } = workerData as Errand;
const kernel = joinKernel(shared);
const shards = offsets.map((offset) => kernel.memory.view(offset + from, to - from));
new ReedSolomon({ kernel, data: 4, parity: 2 }).encode(shards.slice(0, 4), shards.slice(4));
