import { UsageError } from './command.ts';

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KiB: 1_024,
  MiB: 1_048_576,
  GiB: 1_073_741_824,
  kB: 1_000,
  MB: 1_000_000,
  GB: 1_000_000_000,
};
const LEAST_RATE = 65_536;

const MOST_BYTES = 2 ** 50;

function amountOf(word: string, what: string): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?) ?([a-zA-Z]*)$/.exec(word) ?? [];
  const times = UNITS[unit];
  if (number === undefined || times === undefined) {
    throw new UsageError(`"${word}" is no ${what}; such are 50MiB, 1.5GB`);
  }
  return Math.round(Number(number) * times);
}

/** `2GiB`: bytes. @throws UsageError */
export function bytesOf(word: string): number {
  const bytes = amountOf(word, 'number of bytes');
  if (bytes < 1 || bytes > MOST_BYTES) throw new UsageError(`"${word}": 1 B to 1048576 GiB make sense`);
  return bytes;
}

/** `50MiB`, `1.5 GB/s`: bytes per second. @throws UsageError */
export function byteRateOf(word: string): number {
  const rate = amountOf(word.replace(/\/s$/, ''), 'rate, per second');
  if (rate < LEAST_RATE) throw new UsageError(`"${word}" is too little: at least 64KiB per second`);
  return rate;
}

/** `0.5`: a part of the whole. @throws UsageError */
export function shareOf(word: string): number {
  const share = Number(word);
  if (word.trim() === '' || !(share >= 0.01 && share <= 1)) {
    throw new UsageError(`"${word}" is no share: 0.01 to 1`);
  }
  return share;
}
