/** One of our own invariants does not hold: a bug, never bad input. Nobody catches it to carry on. */
export class BrokenInvariant extends Error {
  constructor(invariant: string) {
    super(`invariant broken: ${invariant}`);
    this.name = 'BrokenInvariant';
  }
}

/**
 * States an invariant, in the positive; always on.
 *
 * @throws BrokenInvariant if `holds` is false
 */
export function assert(holds: boolean, invariant: string): asserts holds {
  if (!holds) throw new BrokenInvariant(invariant);
}

/** Proof for the compiler that every case of a union was handled. */
export function unreachable(value: never): never {
  throw new BrokenInvariant(`no case for ${JSON.stringify(value)}`);
}
