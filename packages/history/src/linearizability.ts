import { assert } from '@webdfs/base';
import type { Action, Operation } from './operation.ts';
import { type RegisterState, registerStep } from './register.ts';

/** One end of an operation in the order of time: a question, or an answer. */
interface End {
  /** Position of its operation by the order of questions. */
  readonly index: number;
  readonly operation: Operation;
  readonly isQuestion: boolean;
  /** Of a question: its answer, if it has one. */
  answer: End | undefined;
  previous: End | undefined;
  next: End | undefined;
}

export type Verdict =
  | { readonly type: 'linearizable' }
  | { readonly type: 'not-linearizable' }
  /** Neither was found within so many steps. */
  | { readonly type: 'undecided'; readonly steps: number };

export const MAX_STEPS = 2_000_000;

/**
 * Ends of all operations as a list in the order of time. Of a question and an answer at one instant the question comes first:
 * then both operations overlap, and nothing is blamed on a coarse clock. Unknown operations have no answer.
 */
function endsOf(operations: readonly Operation[]): End {
  const sorted = operations.toSorted((a, b) => a.askedAt - b.askedAt);
  const timed: { at: number; end: End }[] = [];
  for (const [index, operation] of sorted.entries()) {
    const make = (isQuestion: boolean): End => {
      return { index, operation, isQuestion, answer: undefined, previous: undefined, next: undefined };
    };
    const question = make(true);
    timed.push({ at: operation.askedAt, end: question });
    if (operation.result.type === 'unknown') continue;
    assert(operation.answeredAt >= operation.askedAt, 'an answer comes after its question');
    question.answer = make(false);
    timed.push({ at: operation.answeredAt, end: question.answer });
  }
  timed.sort((a, b) => a.at - b.at || Number(b.end.isQuestion) - Number(a.end.isQuestion));
  const nothing = { client: 0, key: '', askedAt: 0, answeredAt: 0 };
  const head: End = {
    index: -1,
    operation: { ...nothing, action: { type: 'read' }, result: { type: 'unknown' } },
    isQuestion: true,
    answer: undefined,
    previous: undefined,
    next: undefined,
  };
  let last = head;
  for (const { end } of timed) {
    last.next = end;
    end.previous = last;
    last = end;
  }
  return head;
}

function unlink(end: End): void {
  end.previous!.next = end.next;
  if (end.next !== undefined) end.next.previous = end.previous;
}

function relink(end: End): void {
  end.previous!.next = end;
  if (end.next !== undefined) end.next.previous = end;
}

/** Which value an answer shows that there was; undefined if it shows none. */
function shownBy({ action, result }: Operation): string | undefined {
  if (action.type === 'read') return result.type === 'read' ? result.value : undefined;
  return result.type === 'done' && action.condition?.type === 'is' ? action.condition.value : undefined;
}

/** What operations without a place need of the states that are still to come. */
class Needs {
  /** Operations that show a value, by value; of values that are written once only. */
  readonly #shown = new Map<string, number>();
  /** Swaps of unknown outcome, by the value that they would replace. */
  readonly #wanted = new Map<string, number>();
  /** Operations that were refused. */
  #refused = 0;

  constructor(operations: readonly Operation[], initial: RegisterState) {
    const written = new Map<string, number>(initial === undefined ? [] : [[initial, 1]]);
    for (const { action } of operations) {
      if (action.type === 'write') written.set(action.value, (written.get(action.value) ?? 0) + 1);
    }
    for (const [value, count] of written) if (count === 1) this.#shown.set(value, 0);
    for (const operation of operations) this.change(operation, 1);
  }

  change(operation: Operation, by: 1 | -1): void {
    const { action, result } = operation;
    if (result.type === 'refused') this.#refused += by;
    if (result.type === 'unknown' && action.type !== 'read' && action.condition?.type === 'is') {
      this.#wanted.set(action.condition.value, (this.#wanted.get(action.condition.value) ?? 0) + by);
    }
    const value = shownBy(operation);
    const count = value === undefined ? undefined : this.#shown.get(value);
    if (count !== undefined) this.#shown.set(value!, count + by);
  }

  /** A value that was written once and is overwritten never comes back: whoever saw it must have its place by then. */
  mayLeave(state: RegisterState): boolean {
    return state === undefined || (this.#shown.get(state) ?? 0) === 0;
  }

  /** Whether a value, once written, explains anything that is still to be explained. */
  explains(value: string): boolean {
    return (this.#shown.get(value) ?? 1) > 0 || (this.#wanted.get(value) ?? 0) > 0;
  }

  /** A refusal is explained by any value in the way. */
  get anyRefused(): boolean {
    return this.#refused > 0;
  }
}

/** The search: one order of operations that is being tried, and what has been tried before. */
class Search {
  readonly #head: End;
  readonly #needs: Needs;
  readonly #tried = new Set<string>();
  readonly #path: { end: End; state: RegisterState; highest: number }[] = [];
  /** Operations that were answered and have no place yet. */
  #unplaced: number;
  #state: RegisterState;
  /** The latest question that has a place. */
  #highest = -1;

  constructor(operations: readonly Operation[], initial: RegisterState) {
    this.#head = endsOf(operations);
    this.#needs = new Needs(operations, initial);
    this.#state = initial;
    this.#unplaced = operations.filter(({ result }) => result.type !== 'unknown').length;
  }

  run(maxSteps: number): Verdict {
    let end = this.#head.next;
    for (let steps = 0; this.#unplaced > 0; steps++) {
      if (steps >= maxSteps) return { type: 'undecided', steps };
      if (end?.isQuestion === true) {
        end = this.#place(end) ? this.#head.next : end.next;
        continue;
      }
      // An answer whose question has no place: this order leads nowhere.
      const last = this.#path.pop();
      if (last === undefined) return { type: 'not-linearizable' };
      end = this.#takeBack(last);
    }
    return { type: 'linearizable' };
  }

  /** Gives the operation the next place, if it could have happened now and this has not been tried. */
  #place(end: End): boolean {
    const after = registerStep(this.#state, end.operation);
    if (after === 'no') return false;
    this.#needs.change(end.operation, -1);
    if (!this.#isSensible(end, after.state)) {
      this.#needs.change(end.operation, 1);
      return false;
    }
    const before = { end, state: this.#state, highest: this.#highest };
    unlink(end);
    if (end.answer !== undefined) unlink(end.answer);
    const highest = Math.max(this.#highest, end.index);
    const name = this.#nameOf(highest, after.state);
    if (this.#tried.has(name)) {
      this.#link(end);
      this.#needs.change(end.operation, 1);
      return false;
    }
    this.#tried.add(name);
    this.#path.push(before);
    this.#state = after.state;
    this.#highest = highest;
    if (end.answer !== undefined) this.#unplaced -= 1;
    return true;
  }

  /** Whether a place here can lead anywhere, and is needed: what is not known to have happened need not. */
  #isSensible(end: End, after: RegisterState): boolean {
    const { action, result } = end.operation;
    if (action.type === 'read') return true;
    if (after !== this.#state && !this.#needs.mayLeave(this.#state)) return false;
    if (result.type !== 'unknown') return true;
    if (after === this.#state) return false;
    const kind = this.#kindOf(action);
    if (kind === 'useless') return false;
    return kind === 'special' || this.#isFirst(end, kind);
  }

  /** What an operation of unknown outcome is good for: all of one kind that is not special are as good as one another. */
  #kindOf(action: Action): 'useless' | 'special' | 'removal' | 'filling' {
    if (action.type === 'read') return 'useless';
    if (action.type === 'write' && this.#needs.explains(action.value)) return 'special';
    if (action.type === 'write' && !this.#needs.anyRefused) return 'useless';
    if (action.condition !== undefined) return 'special';
    return action.type === 'write' ? 'filling' : 'removal';
  }

  /** Of those that are as good as one another the earliest goes first. */
  #isFirst(end: End, kind: 'removal' | 'filling'): boolean {
    for (let other = this.#head.next; other !== end; other = other!.next) {
      const { action, result } = other!.operation;
      if (other!.isQuestion && result.type === 'unknown' && this.#kindOf(action) === kind) return false;
    }
    return true;
  }

  #takeBack({ end, state, highest }: { end: End; state: RegisterState; highest: number }): End | undefined {
    this.#state = state;
    this.#highest = highest;
    this.#needs.change(end.operation, 1);
    if (end.answer !== undefined) this.#unplaced += 1;
    this.#link(end);
    return end.next;
  }

  #link(end: End): void {
    if (end.answer !== undefined) relink(end.answer);
    relink(end);
  }

  /**
   * Which operations have a place, and the state after them: the questions up to the latest placed one but for those still in
   * the list. These are few (they overlap, or are unknown), while a set of all placed ones would grow with the history.
   */
  #nameOf(highest: number, state: RegisterState): string {
    let name = `${state === undefined ? '' : `=${state}`} ${highest}`;
    for (let end = this.#head.next; end !== undefined; end = end.next) {
      if (!end.isQuestion) continue;
      if (end.index > highest) break;
      name += `,${end.index}`;
    }
    return name;
  }
}

/**
 * Whether the operations of one key could have happened one after another, each at an instant between its question and its
 * answer. Exponential in the number of operations that overlap, not in that of all.
 *
 * Source: Wing and Gong, "Testing and Verifying Concurrent Objects", JPDC 17 (1993), section 4.3, with the memory of Lowe,
 * "Testing for Linearizability", CCPE 29(4), 2017, section 4.
 */
export function checkKey(
  operations: readonly Operation[],
  options: { readonly initial?: string; readonly maxSteps?: number } = {},
): Verdict {
  return new Search(operations, options.initial).run(options.maxSteps ?? MAX_STEPS);
}
