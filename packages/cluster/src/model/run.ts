import { happen } from './events.ts';
import { Rules } from './rules.ts';
import { type Flaw, World } from './world.ts';

const SHAPES = [
  { nodes: 4, copies: 3, minCopies: 2 },
  { nodes: 4, copies: 3, minCopies: 1 },
  { nodes: 5, copies: 3, minCopies: 2 },
  { nodes: 4, copies: 2, minCopies: 1 },
  { nodes: 6, copies: 5, minCopies: 3 },
  { nodes: 4, copies: 3, minCopies: 3 },
] as const;

/** What one random history came to. */
export interface RunResult {
  /** The rule that was broken, and after how many events. */
  readonly broken: string | undefined;
  readonly events: number;
  /** Entries that clients were told of. */
  readonly told: number;
  /** Times that a number of copies became another. */
  readonly policies: number;
}

/** Lets a world of some shape go through `events` things by the chance of a seed; stops at the first broken rule. */
export function runHistory(
  seed: number,
  events: number,
  { flaw, changesPolicies = false }: { readonly flaw?: Flaw; readonly changesPolicies?: boolean } = {},
): RunResult {
  const shape = SHAPES[seed % SHAPES.length]!;
  const world = new World({ seed, ...shape, changesPolicies, ...(flaw === undefined ? {} : { flaw }) });
  const rules = new Rules(world);
  const policies = (): number =>
    world.snapshots.filter(
      ({ map }, i) => i > 0 && map.policies[0]!.copies !== world.snapshots[i - 1]!.map.policies[0]!.copies,
    ).length;
  const told = (): number => world.history.reduce((sum, { length }) => sum + length, 0);
  for (let i = 0; i < events; i++) {
    happen(world);
    const broken = rules.broken();
    if (broken !== undefined) return { broken, events: i + 1, told: told(), policies: policies() };
  }
  return { broken: undefined, events, told: told(), policies: policies() };
}
