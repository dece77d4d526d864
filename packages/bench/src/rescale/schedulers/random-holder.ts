import type { Transfer } from '@webdfs/rescale';
import { planSeconds } from './plan-seconds.ts';
import type { DataTransferScheduler } from '../parts.ts';
import { parcelsOf } from './min-max.ts';

/** A control: any holder serves, in any order, and nothing is passed on. */
export const RANDOM_HOLDER: DataTransferScheduler = {
  name: 'random holder, random order',
  schedule(input) {
    const { random, ratesOf } = input;
    const transfers = parcelsOf(input).flatMap(({ id, bytes, holders, receivers }) =>
      receivers.map((to): Transfer => {
        return {
          parcel: id,
          bytes,
          from: holders[random.below(holders.length)]!,
          to,
          depth: 0,
          key: random.fraction(),
        };
      }),
    );
    transfers.sort((a, b) => a.key - b.key);
    return { transfers, seconds: planSeconds(transfers, ratesOf) };
  },
};
