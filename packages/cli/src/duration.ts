import { UsageError } from './command.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `10m`, `1.5h`: milliseconds. @throws UsageError */
export function durationOf(word: string): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(word) ?? [];
  if (number === undefined) throw new UsageError(`"${word}" is no duration: say 90s, 10m, 1.5h or 2d`);
  return Math.round(Number(number) * UNITS[unit]!);
}
