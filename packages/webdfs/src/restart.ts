/**
 * When a supervised process is started, killed and started again. Pure: the supervisor owns the clock and the processes.
 */

/** The first wait after a death, doubling with each early one up to the last, milliseconds. */
export const FIRST_BACK_OFF_MS = 200;
export const LAST_BACK_OFF_MS = 10_000;
/** A run at least this long was a good one: the next death waits the first back-off again. */
export const GOOD_RUN_MS = 30_000;
/** A process that says nothing for so long is hung, and killed; a starting one (recovery!) has longer. */
export const SILENCE_MS = 5_000;
export const START_MS = 300_000;

export type ChildState =
  | { readonly type: 'starting'; readonly sinceMs: number; readonly backOffMs: number }
  | { readonly type: 'up'; readonly sinceMs: number; readonly heardMs: number; readonly backOffMs: number }
  | { readonly type: 'killed'; readonly backOffMs: number }
  | { readonly type: 'waiting'; readonly untilMs: number; readonly backOffMs: number }
  | { readonly type: 'stopped' };

export type ChildEvent =
  | { readonly type: 'ready' }
  | { readonly type: 'beat' }
  | { readonly type: 'exit' }
  | { readonly type: 'tick' }
  | { readonly type: 'stop' };

export type ChildEffect = 'spawn' | 'kill';

export interface ChildStep {
  readonly state: ChildState;
  readonly effect?: ChildEffect;
}

export function firstChild(atMs: number): ChildStep {
  return { state: { type: 'starting', sinceMs: atMs, backOffMs: FIRST_BACK_OFF_MS }, effect: 'spawn' };
}

function afterExit(state: ChildState, atMs: number): ChildState {
  if (state.type === 'stopped') return state;
  const good = state.type === 'up' && atMs - state.sinceMs >= GOOD_RUN_MS;
  const wait = good ? FIRST_BACK_OFF_MS : state.backOffMs;
  return { type: 'waiting', untilMs: atMs + wait, backOffMs: Math.min(LAST_BACK_OFF_MS, wait * 2) };
}

function afterTick(state: ChildState, atMs: number): ChildStep {
  switch (state.type) {
    case 'waiting':
      if (atMs < state.untilMs) return { state };
      return { state: { type: 'starting', sinceMs: atMs, backOffMs: state.backOffMs }, effect: 'spawn' };
    case 'starting':
      if (atMs - state.sinceMs < START_MS) return { state };
      return { state: { type: 'killed', backOffMs: state.backOffMs }, effect: 'kill' };
    case 'up':
      if (atMs - state.heardMs < SILENCE_MS) return { state };
      return { state: { type: 'killed', backOffMs: state.backOffMs }, effect: 'kill' };
    case 'killed':
    case 'stopped':
      return { state };
  }
}

export function stepChild(state: ChildState, event: ChildEvent, atMs: number): ChildStep {
  switch (event.type) {
    case 'ready':
      if (state.type !== 'starting') return { state };
      return { state: { type: 'up', sinceMs: atMs, heardMs: atMs, backOffMs: state.backOffMs } };
    case 'beat':
      // recovery of a large store takes its time, but it says so: a beating start is no hung one
      if (state.type === 'starting') return { state: { ...state, sinceMs: atMs } };
      return { state: state.type === 'up' ? { ...state, heardMs: atMs } : state };
    case 'exit':
      return { state: afterExit(state, atMs) };
    case 'tick':
      return afterTick(state, atMs);
    case 'stop':
      return { state: { type: 'stopped' } };
  }
}
