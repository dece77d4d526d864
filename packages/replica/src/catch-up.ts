import { type GroupKey, groupNumber } from '@webdfs/base';
import type { CallContext, Message, Outgoing } from '@webdfs/wire';
import type { EngineHooks } from './hooks.ts';
import { Learner, type LearnerLimits, type Moving } from './learner.ts';
import { LearnerSource, type SourceLimits } from './learner-source.ts';
import { serveKeys } from './fetching.ts';
import type { CallHandler } from './engine.ts';
import { attachedBytes, hurryOf, serveMovedBlock } from './move-block.ts';
import { MovePace } from './move-pace.ts';
import { MovePlan } from './move-plan.ts';
import type { ReplicaHost } from './replica-host.ts';
import type { CatchUpStatus } from './status-codec.ts';
import { VERB } from './verbs.ts';

/**
 * Catching up on one node, both sides: as a learner of others' groups, and as the source for learners of its own.
 * docs/internals/catching-up.md tells how.
 */
export class CatchUp {
  readonly pace: MovePace;
  readonly #host: ReplicaHost;
  readonly #learner: Learner;
  readonly #source: LearnerSource;
  #stop: (() => void) | undefined;
  /** Groups that began or ceased to be served in this turn. */
  readonly #changed = new Map<number, GroupKey>();

  constructor(host: ReplicaHost, limits: { learner?: Partial<LearnerLimits>; source?: Partial<SourceLimits> } = {}) {
    this.#host = host;
    const moving: Moving = { plan: new MovePlan(host), pace: new MovePace(host) };
    this.pace = moving.pace;
    this.#learner = new Learner(host, moving, limits.learner);
    this.#source = new LearnerSource(host, moving.plan, limits.source);
  }

  /** Answers the verbs of learning from now on. */
  register(add: (verb: number, handler: CallHandler) => void): void {
    add(VERB.LEARN, (message, context) => this.#learner.onLearn(message, context.from));
    add(VERB.LEARNED, (message, context) => this.#source.onLearned(message, context.from));
    add(VERB.PAGE, async (message, context) => {
      return await this.#inTurn(await this.#source.onPage(message, context.from), context);
    });
    add(VERB.FETCH_KEYS, async (message, context) => {
      return await this.#inTurn(await serveKeys(this.#host, message), context);
    });
  }

  /** MOVE_BLOCK. */
  async serveBlock(message: Message, body: Outgoing, context: CallContext): Promise<Message> {
    return await serveMovedBlock(this.#host, this.pace.outgo, [message, body, context]);
  }

  /** An answer leaves when its bytes may. */
  async #inTurn({ group, answer }: { group: GroupKey; answer: Message }, { signal }: CallContext): Promise<Message> {
    await this.pace.outgo.pass(attachedBytes(answer), hurryOf(this.#host.map.view, group), signal);
    return answer;
  }

  /** After the engine has started. */
  start(): void {
    this.#stop = this.#host.map.onChange((view, groups) => {
      this.#learner.mapChanged(groups);
      this.#source.mapChanged(view, groups);
    });
    this.pace.start();
    this.#source.start();
  }

  stop(): void {
    this.#stop?.();
    this.pace.stop();
    this.#learner.stop();
    this.#source.stop();
  }

  /** What the engine tells of learners and of serving. */
  readonly hooks: Required<Pick<EngineHooks, 'serving' | 'learnerLost' | 'learnerRefused'>> = {
    serving: (group) => this.#considerSoon(group),
    learnerLost: (group, node, why) => this.#source.lost(group, node, why),
    learnerRefused: (group, node) => this.#source.refused(group, node),
  };

  /** The engine tells in the middle of a step: what follows from it must not step the same group again. */
  #considerSoon(group: GroupKey): void {
    if (this.#changed.size === 0) {
      this.#host.clock.soon(() => {
        const changed = [...this.#changed.values()];
        this.#changed.clear();
        for (const key of changed) this.#source.consider(key);
      });
    }
    this.#changed.set(groupNumber(group), group);
  }

  status(): CatchUpStatus {
    return this.#learner.status();
  }

  /** Numbers for metrics and tests. */
  counters(): ReturnType<LearnerSource['counts']> & ReturnType<Learner['counters']> & ReturnType<MovePace['counters']> {
    return { ...this.#source.counts(), ...this.#learner.counters(), ...this.pace.counters() };
  }
}
