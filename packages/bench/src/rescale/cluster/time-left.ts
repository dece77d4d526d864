import type { Sample } from './cluster-run.ts';

/** What was told of the time left is judged from this share of the bytes on. */
export const TOLD_AFTER = 0.2;

/**
 * How wrong the time left was when a fifth of the bytes had moved: what was told by what it turned out to be, less one.
 *
 * @returns undefined where nothing was told then
 */
export function errorOfTimeLeft(samples: readonly Sample[], seconds: number): number | undefined {
  const [first] = samples;
  if (first === undefined) return undefined;
  const told = samples.find((sample) => sample.bytesLeft <= (1 - TOLD_AFTER) * first.bytesLeft);
  if (told?.secondsLeft === undefined) return undefined;
  const truly = seconds - told.seconds;
  return truly <= 0 ? undefined : told.secondsLeft / truly - 1;
}
