import type { Action, Condition, Result } from './operation.ts';

/** A value, or none. */
export type RegisterState = string | undefined;

function holds(state: RegisterState, condition: Condition | undefined): boolean {
  if (condition === undefined) return true;
  return condition.type === 'absent' ? state === undefined : state === condition.value;
}

/**
 * What a register with compare-and-swap, of which nothing is hidden, holds after an operation that was answered like this; `no`
 * if it cannot have been answered so in this state. An operation of unknown outcome is done here if its condition holds.
 */
export function registerStep(
  state: RegisterState,
  { action, result }: { readonly action: Action; readonly result: Result },
): { readonly state: RegisterState } | 'no' {
  if (action.type === 'read') {
    return result.type === 'unknown' || (result.type === 'read' && result.value === state) ? { state } : 'no';
  }
  const isHolding = holds(state, action.condition);
  if (result.type === 'refused') return isHolding ? 'no' : { state };
  if (result.type === 'done' && !isHolding) return 'no';
  if (!isHolding) return { state };
  return { state: action.type === 'write' ? action.value : undefined };
}
