import type { Rate } from './sampling.ts';
import type { Shape } from './stripe.ts';

/** What was measured for one shape and size. */
export interface Cell {
  readonly shape: Shape;
  readonly shardBytes: number;
  readonly rates: readonly Rate[];
}
