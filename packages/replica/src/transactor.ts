import { type Ballot, type Clock, codeOf, type GroupKey, type Log, messageOf, type Revision } from '@webdfs/base';
import { type LocalMap, type Proposal as MembershipProposal, together, type Transaction } from '@webdfs/cluster';

const AGAIN_MS = 200;
/** Changes of configuration that wait for the map store; beyond it they surely fail, and are tried later. */
const MAX_WAITING = 8_192;

/** A change of one group's configuration on its way to the map. */
export interface PlannedChange {
  readonly key: GroupKey;
  readonly ballot: Ballot;
  readonly id: number;
  /** Of the map that the plan was made from. */
  readonly revision: Revision;
  readonly plan: MembershipProposal;
}

/**
 * Carries changes of configuration to the map store: those of one turn together, again one by one where a batch failed,
 * and as often as it takes to know what became of them (W10). Their conditions name the configuration they were made
 * from, so that a repeat of one that was done fails and can do no harm.
 */
export class Transactor {
  readonly #map: LocalMap;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #outcome: (change: PlannedChange, outcome: 'done' | 'failed' | 'unknown') => void;
  #waiting: PlannedChange[] = [];
  #isRunning = false;
  #isStopped = false;

  constructor(options: {
    map: LocalMap;
    clock: Clock;
    log: Log;
    outcome: (change: PlannedChange, outcome: 'done' | 'failed' | 'unknown') => void;
  }) {
    this.#map = options.map;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#outcome = options.outcome;
  }

  propose(change: PlannedChange): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#clock.soon(() => this.#outcome(change, 'failed'));
      return;
    }
    this.#waiting.push(change);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#clock.soon(() => void this.#run());
  }

  stop(): void {
    this.#isStopped = true;
    this.#waiting = [];
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#isStopped) {
      const changes = this.#waiting;
      this.#waiting = [];
      const byPlan = new Map(changes.map((change) => [change.plan, change]));
      for (const batch of this.#batches(changes)) {
        await this.#carry(
          batch.plans.map((plan) => byPlan.get(plan)!),
          batch.transaction,
        );
      }
    }
    this.#isRunning = false;
  }

  /** Plans of one map go together; those of different maps need not agree on what they saw. */
  #batches(changes: readonly PlannedChange[]): { plans: readonly MembershipProposal[]; transaction: Transaction }[] {
    const byRevision = new Map<Revision, MembershipProposal[]>();
    for (const { revision, plan } of changes) {
      const plans = byRevision.get(revision);
      if (plans === undefined) byRevision.set(revision, [plan]);
      else plans.push(plan);
    }
    const batches = [...byRevision.values()].flatMap((plans) => together(plans));
    return batches.map(({ proposals, transaction }) => ({ plans: proposals, transaction }));
  }

  async #carry(changes: readonly PlannedChange[], transaction: Transaction): Promise<void> {
    const done = await this.#settle(changes, transaction);
    if (done === undefined) return;
    if (done || changes.length === 1) {
      for (const change of changes) this.#outcome(change, done ? 'done' : 'failed');
      return;
    }
    for (const change of changes) await this.#carry([change], change.plan.transaction);
  }

  /** Until it is known; undefined only when stopped. The map is as new as the answer when it returns. */
  async #settle(changes: readonly PlannedChange[], transaction: Transaction): Promise<boolean | undefined> {
    let isTold = false;
    while (!this.#isStopped) {
      try {
        const { done, revision } = await this.#map.transact(transaction);
        await this.#map.readThrough(revision);
        return done;
      } catch (error) {
        if (codeOf(error) === undefined) throw error;
        this.#log.warn('change of configuration: outcome unknown', {
          changes: changes.length,
          error: messageOf(error),
        });
        if (!isTold) for (const change of changes) this.#outcome(change, 'unknown');
        isTold = true;
      }
      await new Promise<void>((resolve) => void this.#clock.after(AGAIN_MS, resolve));
    }
    return undefined;
  }
}
