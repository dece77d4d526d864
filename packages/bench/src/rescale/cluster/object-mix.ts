/** Objects of one size, by the share of all bytes that is theirs. */
interface SizeClass {
  readonly bytes: number;
  readonly share: number;
}

const KIB = 1_024;
const MIB = 1_048_576;

/** Many small ones, few large ones: those within a record, of one block, of several. */
const MIX: readonly SizeClass[] = [
  { bytes: 4 * KIB, share: 0.02 },
  { bytes: 64 * KIB, share: 0.08 },
  { bytes: MIB, share: 0.45 },
  { bytes: 4 * MIB, share: 0.3 },
  { bytes: 24 * MIB, share: 0.15 },
];

/** Sizes of mixed objects with so many bytes in all, at least one object; large and small ones alternate. */
export function mixedSizes(totalBytes: number): number[] {
  const due = MIX.map(({ bytes, share }) => ({ bytes, count: Math.round((share * totalBytes) / bytes), dealt: 0 }));
  const count = due.reduce((sum, each) => sum + each.count, 0);
  const sizes: number[] = [];
  for (let i = 0; i < count; i++) {
    // whoever lags most behind its share is next
    const next = due.reduce((a, b) => (lag(b, i, count) > lag(a, i, count) ? b : a));
    next.dealt++;
    sizes.push(next.bytes);
  }
  return sizes.length === 0 ? [Math.max(1, Math.round(totalBytes))] : sizes;
}

function lag({ count, dealt }: { count: number; dealt: number }, i: number, all: number): number {
  return dealt >= count ? -Infinity : ((i + 1) * count) / all - dealt;
}
