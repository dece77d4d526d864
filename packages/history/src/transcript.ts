import type { Action, Condition, Operation, Result } from './operation.ts';

function conditionText(condition: Condition | undefined): string {
  if (condition === undefined) return '';
  return condition.type === 'absent' ? ' if absent' : ` if ${condition.value}`;
}

function actionText(action: Action): string {
  switch (action.type) {
    case 'read':
      return 'read';
    case 'write':
      return `write ${action.value}${conditionText(action.condition)}`;
    case 'delete':
      return `delete${conditionText(action.condition)}`;
  }
}

function resultText(result: Result): string {
  switch (result.type) {
    case 'read':
      return result.value ?? 'nothing there';
    case 'done':
      return 'done';
    case 'refused':
      return 'refused';
    case 'unknown':
      return 'outcome unknown';
  }
}

/** One operation as a line: `client 3  [12.0, 15.5]  write a17 if absent: done`. */
export function operationText(operation: Operation, unit = ''): string {
  const { client, action, result, askedAt, answeredAt } = operation;
  const time = (at: number): string => (at === Infinity ? '…' : `${Number(at.toFixed(1))}${unit}`);
  return `client ${client}  [${time(askedAt)}, ${time(answeredAt)}]  ${actionText(action)}: ${resultText(result)}`;
}

/** Operations of one key as a drawing, one a line, each a bar between question and answer. */
export function drawOperations(operations: readonly Operation[], options: { readonly unit?: string } = {}): string[] {
  const width = 48;
  const ends = operations.flatMap(({ askedAt, answeredAt }) => [askedAt, answeredAt]).filter(Number.isFinite);
  const places = [...new Set(ends)].toSorted((a, b) => a - b);
  const columnOf = (at: number): number => {
    if (at === Infinity) return width;
    return Math.round((places.indexOf(at) * (width - 1)) / Math.max(1, places.length - 1));
  };
  return operations.map((operation) => {
    const from = columnOf(operation.askedAt);
    const to = columnOf(operation.answeredAt);
    const isOpen = operation.answeredAt === Infinity;
    const bar = `${' '.repeat(from)}├${'─'.repeat(Math.max(0, to - from - 1))}${isOpen ? '┄' : '┤'}`;
    return `${bar.padEnd(width + 2)} ${operationText(operation, options.unit ?? '')}`;
  });
}
