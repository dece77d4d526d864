import { checkKey } from './linearizability.ts';
import type { Operation } from './operation.ts';

/** Looks at shorter histories, and steps of each beside four for every operation: what is hard to decide is kept as it is. */
const MAX_LOOKS = 600;
const LOOK_STEPS = 1_000;

function isBroken(operations: readonly Operation[]): boolean {
  return checkKey(operations, { maxSteps: LOOK_STEPS + 4 * operations.length }).type === 'not-linearizable';
}

/** The same operation when nothing is known of its outcome: it explains everything that it explained before, and demands nothing. */
function loosened(operation: Operation): Operation {
  return { ...operation, result: { type: 'unknown' }, answeredAt: Infinity };
}

function weakened(operations: readonly Operation[]): Operation[] {
  return operations.filter(({ action }) => action.type !== 'read').map(loosened);
}

/** The value that an operation shows, or asks for. */
function* seenBy({ action, result }: Operation): Generator<string> {
  if (result.type === 'read' && result.value !== undefined) yield result.value;
  if (action.type !== 'read' && action.condition?.type === 'is') yield action.condition.value;
}

/**
 * The least that shows a history of one key not to be linearizable.
 *
 * First it is cut after the first answer that contradicts what came before; then one operation after another is dropped (a
 * read) or loosened (a write, which thereby may happen at any time or never), as long as the contradiction stands. Both only
 * make a history easier to explain, so what is left could not be explained either. Loosened writes are shown only where what
 * is left speaks of their values.
 */
export function shortestOffending(operations: readonly Operation[]): Operation[] {
  let left = cutAfterContradiction(operations);
  // large pieces first: most of a long history has nothing to do with it
  let looks = 0;
  for (let piece = Math.ceil(left.length / 2); piece >= 1; piece = piece === 1 ? 0 : Math.ceil(piece / 2)) {
    for (let end = left.length; end > 0; end -= piece) {
      const taken = left.slice(Math.max(0, end - piece), end);
      const less = [...left.slice(0, Math.max(0, end - piece)), ...weakened(taken), ...left.slice(end)];
      if (looks >= MAX_LOOKS || taken.every(({ result }) => result.type === 'unknown')) continue;
      looks += 1;
      if (isBroken(less)) left = less;
    }
  }
  const demanding = left.filter(({ result }) => result.type !== 'unknown');
  const spoken = new Set(demanding.flatMap((operation) => [...seenBy(operation)]));
  const shown = left.filter(({ action, result }) => {
    return result.type !== 'unknown' || (action.type === 'write' && spoken.has(action.value));
  });
  // as they were, not loosened
  return operations
    .filter((operation) => shown.some((each) => isSame(each, operation)))
    .toSorted((a, b) => a.askedAt - b.askedAt);
}

function isSame(a: Operation, b: Operation): boolean {
  return a.action === b.action && a.askedAt === b.askedAt && a.client === b.client;
}

/** What was known at the first answer that no order explains; operations still under way then are loosened. */
function cutAfterContradiction(operations: readonly Operation[]): Operation[] {
  const answers = operations
    .filter(({ result }) => result.type !== 'unknown')
    .map(({ answeredAt }) => answeredAt)
    .toSorted((a, b) => a - b);
  const until = (at: number): Operation[] =>
    operations
      .filter(({ askedAt }) => askedAt <= at)
      .map((operation) => (operation.answeredAt <= at ? operation : loosened(operation)))
      .filter(({ action, result }) => action.type !== 'read' || result.type !== 'unknown');
  let low = 0;
  let high = answers.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBroken(until(answers[middle]!))) high = middle;
    else low = middle + 1;
  }
  const cut = until(answers[low] ?? Infinity);
  return isBroken(cut) ? cut : [...operations];
}
