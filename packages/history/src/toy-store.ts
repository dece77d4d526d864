import type { SeededRandom } from '@webdfs/base';
import type { Action, Operation, Result } from './operation.ts';
import { HistoryRecorder } from './recorder.ts';
import { registerStep } from './register.ts';

/** How a toy store may be broken. */
export type ToyMutant =
  | 'drops-acknowledged-write'
  | 'serves-stale-read'
  | 'loses-compare-and-swap'
  | 'forgets-on-crash';

const KEYS = ['a', 'b', 'c'];

function anAction(random: SeededRandom, value: string, current: string | undefined): Action {
  const dice = random.below(12);
  if (dice < 5) return { type: 'read' };
  if (dice < 7) return { type: 'write', value };
  if (dice < 8) return { type: 'write', value, condition: { type: 'absent' } };
  if (dice < 11 && current !== undefined) return { type: 'write', value, condition: { type: 'is', value: current } };
  return { type: 'delete' };
}

/**
 * A store of a few registers with several clients whose operations overlap, and what they saw of it: sound, or broken in one
 * way. For tests of the checker.
 */
export function toyHistory(random: SeededRandom, options: { operations: number; mutant?: ToyMutant }): Operation[] {
  const { mutant } = options;
  let instant = 0;
  const recorder = new HistoryRecorder(() => instant);
  const state = new Map<string, string | undefined>();
  /** What the store would show after a crash, and what it showed before. */
  const synced = new Map<string, string | undefined>();
  const earlier = new Map<string, string | undefined>();
  const open: { finish: () => void; endsAt: number }[] = [];
  const rare = (): boolean => random.below(12) === 0;

  const read = (key: string): Result => {
    const isStale = mutant === 'serves-stale-read' && rare();
    return { type: 'read', value: (isStale ? earlier : state).get(key) };
  };

  const perform = (key: string, action: Action): Result => {
    if (action.type === 'read') return read(key);
    const current = state.get(key);
    const isBlind = mutant === 'loses-compare-and-swap' && action.condition?.type === 'is' && rare();
    if (!isBlind && registerStep(current, { action, result: { type: 'done' } }) === 'no') return { type: 'refused' };
    if (mutant === 'drops-acknowledged-write' && rare()) return { type: 'done' };
    earlier.set(key, current);
    state.set(key, action.type === 'write' ? action.value : undefined);
    if (mutant !== 'forgets-on-crash' || !rare()) synced.set(key, state.get(key));
    return { type: 'done' };
  };

  const begin = (i: number): void => {
    const key = KEYS[random.below(KEYS.length)]!;
    const action = anAction(random, `v${i}`, state.get(key));
    const asked = recorder.ask(i % 4, key, action);
    const isLost = random.below(15) === 0;
    // an operation that is lost may be done, at once or later, or never
    if (isLost && random.below(2) === 0) return asked.unknown();
    let result: Result | undefined;
    const act = (): void => void (result ??= perform(key, action));
    if (random.below(2) === 0) act();
    const finish = (): void => {
      act();
      if (isLost || result!.type === 'unknown') asked.unknown();
      else asked.answered(result!);
    };
    open.push({ finish, endsAt: i + random.below(4) });
  };

  for (let i = 0; i < options.operations + 4; i++) {
    instant += 1;
    if (i < options.operations) begin(i);
    if (mutant === 'forgets-on-crash' && random.below(20) === 0) for (const [k, v] of synced) state.set(k, v);
    for (const each of open.splice(0)) {
      instant += 1;
      if (each.endsAt > i) open.push(each);
      else each.finish();
    }
  }
  return recorder.operations();
}
