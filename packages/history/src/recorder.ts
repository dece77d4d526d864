import { WebdfsError } from '@webdfs/base';
import { type Action, type ListingOperation, type Operation, readsOf, type Result } from './operation.ts';

/** An operation that was asked and not answered yet. */
export interface Asked {
  answered(result: Exclude<Result, { type: 'unknown' }>): void;
  /** The client will never know. A read of which nothing is known is no part of a history. */
  unknown(): void;
}

export interface AskedListing {
  answered(covered: readonly string[], listed: ReadonlyMap<string, string>): void;
}

const MAX_OPERATIONS = 4_000_000;

/** Writes down what clients ask and are told. `now` tells instants: of a clock, or positions in an order. */
export class HistoryRecorder {
  readonly #now: () => number;
  readonly #operations: Operation[] = [];
  readonly #open = new Set<Omit<Operation, 'result' | 'answeredAt'>>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** @throws TOO_LARGE when the history has become too long to be kept */
  ask(client: number, key: string, action: Action): Asked {
    const begun = { client, key, action, askedAt: this.#now() };
    this.#open.add(begun);
    const close = (result: Result, answeredAt: number): void => {
      if (!this.#open.delete(begun)) return;
      if (action.type === 'read' && result.type === 'unknown') return;
      this.#push({ ...begun, result, answeredAt });
    };
    return {
      answered: (result) => close(result, this.#now()),
      unknown: () => close({ type: 'unknown' }, Infinity),
    };
  }

  askListing(client: number): AskedListing {
    const askedAt = this.#now();
    return {
      answered: (covered, listed) => {
        const listing: ListingOperation = { client, covered, listed, askedAt, answeredAt: this.#now() };
        for (const read of readsOf(listing)) this.#push(read);
      },
    };
  }

  #push(operation: Operation): void {
    if (this.#operations.length >= MAX_OPERATIONS) {
      throw new WebdfsError('TOO_LARGE', `a history of ${MAX_OPERATIONS} operations`);
    }
    this.#operations.push(operation);
  }

  /** Everything so far; what is still under way counts as unknown. */
  operations(): Operation[] {
    const open = [...this.#open].filter(({ action }) => action.type !== 'read');
    return [
      ...this.#operations,
      ...open.map((begun): Operation => ({ ...begun, result: { type: 'unknown' }, answeredAt: Infinity })),
    ];
  }
}
