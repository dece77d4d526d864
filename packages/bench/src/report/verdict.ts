/** How a measured figure stands beside a published one. */
export type Verdict = 'reproduced' | 'within noise' | `differs, because ${string}`;

export interface Comparison {
  readonly published: number;
  readonly measured: number;
  /** What chance alone explains, in the unit of the figures; 0 for what must come out to the digit. */
  readonly noise: number;
  /** Why it may differ; shown if it does. */
  readonly because?: string;
}

/** `reproduced` is equal to the digit; a difference without a known cause says so. */
export function verdictOf({ published, measured, noise, because }: Comparison): Verdict {
  if (measured === published) return 'reproduced';
  if (Math.abs(measured - published) <= noise) return 'within noise';
  return `differs, because ${because ?? 'of something we do not know'}`;
}
