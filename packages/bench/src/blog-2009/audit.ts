import type { Content } from './content.ts';
import type { BlogTarget, Copy } from './target.ts';

/** What is there in the end, by every object and every copy of it. */
export interface Audit {
  /** Acknowledged objects that cannot be read any more. */
  lost: number;
  /** Objects that were read with other bytes than were written. */
  corrupt: number;
  /** Copies that should be there and are not, and those whose bytes are damaged. */
  copiesMissing: number;
  copiesCorrupt: number;
  /** Objects whose copies are all damaged or missing. */
  withoutGoodCopy: number;
  readonly byNode: Map<number, number>;
}

const AT_ONCE = 8;

export async function auditAll(
  target: BlogTarget,
  content: Content,
  options: {
    readonly acknowledged: readonly number[];
    readonly copies: number;
    /** Asks again until there is an answer. */
    readonly patiently: <T>(ask: () => Promise<T>) => Promise<T>;
    readonly onProgress: (what: string) => void;
  },
): Promise<Audit> {
  const { acknowledged, copies, patiently, onProgress } = options;
  const byNode = new Map((await target.nodes()).map((node) => [node, 0]));
  const audit: Audit = { lost: 0, corrupt: 0, copiesMissing: 0, copiesCorrupt: 0, withoutGoodCopy: 0, byNode };
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < acknowledged.length) {
      const index = acknowledged[next++]!;
      if (next % 500 === 0) onProgress(`${next} of ${acknowledged.length} objects looked at`);
      const key = content.keyOf(index);
      const bytes = await patiently(() => target.get(key));
      if (bytes === undefined) audit.lost++;
      else if (Buffer.compare(bytes, content.bytesOf(index)) !== 0) audit.corrupt++;
      count(audit, await patiently(() => target.copies(key)), copies);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return audit;
}

function count(audit: Audit, found: readonly Copy[], copies: number): void {
  const records = found.filter(({ isRecord }) => isRecord);
  const good = records.filter((copy) => copy.good);
  audit.copiesCorrupt += found.filter((copy) => !copy.good).length;
  audit.copiesMissing += Math.max(0, copies - records.length);
  if (good.length === 0) audit.withoutGoodCopy++;
  for (const { node } of good) audit.byNode.set(node, (audit.byNode.get(node) ?? 0) + 1);
}

/** How far the fullest and the emptiest node are from the mean, as a share of it. */
export function spreadOf(byNode: ReadonlyMap<number, number>): {
  readonly fewest: number;
  readonly most: number;
  readonly mean: number;
  readonly spread: number;
} {
  const counts = [...byNode.values()];
  const mean = counts.reduce((sum, each) => sum + each, 0) / Math.max(1, counts.length);
  const fewest = Math.min(...counts);
  const most = Math.max(...counts);
  return { fewest, most, mean, spread: mean === 0 ? 0 : Math.max(most - mean, mean - fewest) / mean };
}
