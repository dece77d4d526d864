import type { CallContext, Handlers, Message } from '@webdfs/wire';
import { CatchUp } from './catch-up.ts';
import { type EngineOptions, ReplicaEngine } from './engine.ts';
import { Garbage, type GarbageLimits } from './garbage.ts';
import { serveGroupSizes } from './group-sizes.ts';
import type { EngineHooks } from './hooks.ts';
import type { LearnerLimits } from './learner.ts';
import type { SourceLimits } from './learner-source.ts';
import { type LeftoverLimits, Leftovers } from './leftovers.ts';
import { Repair, type RepairLimits } from './repair.ts';
import { serveBurial, serveMend } from './scrub/mending.ts';
import { type ScrubLimits, Scrubber } from './scrub/scrubber.ts';
import { decodeWriteRequest, encodeWriteAnswer } from './request-codec.ts';
import { encodeStatusAnswer, type NodeStatus } from './status-codec.ts';
import { VERB } from './verbs.ts';
import { serveVerify } from './verify.ts';

export interface ReplicaNodeOptions extends EngineOptions {
  /** What the process is, for STATUS. */
  readonly pid: number;
  readonly learner?: Partial<LearnerLimits>;
  readonly source?: Partial<SourceLimits>;
  readonly garbage?: Partial<GarbageLimits>;
  readonly repair?: Partial<RepairLimits>;
  readonly leftovers?: Partial<LeftoverLimits>;
  readonly scrub?: Partial<ScrubLimits>;
}

/**
 * All of replication on one node: the engine, catching up, garbage, repair, scrub, and the calls that look at this node. Whoever owns a
 * transport hands it `handlers`.
 */
export class ReplicaNode {
  readonly engine: ReplicaEngine;
  readonly catchUp: CatchUp;
  readonly garbage: Garbage;
  readonly repair: Repair;
  readonly leftovers: Leftovers;
  readonly scrubber: Scrubber;
  readonly #pid: number;

  constructor(options: ReplicaNodeOptions) {
    const { hooks = {} } = options;
    const own: EngineHooks = {
      ...hooks,
      serving: (group, serving) => {
        this.catchUp.hooks.serving(group, serving);
        hooks.serving?.(group, serving);
      },
      learnerLost: (group, node, why) => {
        this.catchUp.hooks.learnerLost(group, node, why);
        hooks.learnerLost?.(group, node, why);
      },
      learnerRefused: (group, node) => {
        this.catchUp.hooks.learnerRefused(group, node);
        hooks.learnerRefused?.(group, node);
      },
    };
    this.#pid = options.pid;
    this.engine = new ReplicaEngine({ ...options, hooks: own });
    this.catchUp = new CatchUp(this.engine, {
      ...(options.learner && { learner: options.learner }),
      ...(options.source && { source: options.source }),
    });
    this.garbage = new Garbage(this.engine, options.garbage);
    this.repair = new Repair(this.engine, options.repair);
    this.leftovers = new Leftovers(this.engine, options.leftovers);
    this.scrubber = new Scrubber(this.engine, { ...orphansOf(options.garbage), ...options.scrub });
    this.#register();
  }

  /** The lease must have a session, and the map be read. */
  async start(): Promise<void> {
    await this.engine.start();
    this.catchUp.start();
    this.garbage.start();
    this.repair.start();
    this.leftovers.start();
    this.scrubber.start();
  }

  stop(): void {
    this.scrubber.stop();
    this.leftovers.stop();
    this.repair.stop();
    this.garbage.stop();
    this.catchUp.stop();
    this.engine.stop();
  }

  /** What a transport calls. */
  readonly handlers: Handlers = {
    call: (verb, message, context) => this.#call(verb, message, context),
    post: (verb, message, from) => {
      if (verb === VERB.PROTOCOL) this.engine.handlePost(from, message);
    },
    receive: (verb, message, body, context) => this.engine.receive(verb, message, body, context),
    serve: (verb, message, body, context) =>
      verb === VERB.MOVE_BLOCK
        ? this.catchUp.serveBlock(message, body, context)
        : this.engine.serve(verb, message, body, context),
  };

  /** What clients wait for tells how fast groups may move beside it. */
  #call(verb: number, message: Message, context: CallContext): Promise<Message> {
    const answer = this.engine.handleCall(verb, message, context);
    const kind = verb === VERB.READ ? 'read' : verb === VERB.WRITE ? 'write' : undefined;
    if (kind === undefined) return answer;
    const { clock } = this.engine;
    const began = clock.monotonic();
    const took = (): void => this.catchUp.pace.answered(kind, clock.monotonic() - began);
    // who is refused tries again elsewhere: that is not a wait
    answer.then(took, () => undefined);
    return answer;
  }

  #register(): void {
    const { engine, garbage, scrubber } = this;
    this.catchUp.register((verb, handler) => engine.register(verb, handler));
    engine.register(VERB.WRITE, (message) => this.#write(message));
    engine.register(VERB.NAMED, (message) => garbage.onNamed(message));
    engine.register(VERB.EXAMINE, (message) => garbage.onExamine(message));
    engine.register(VERB.VERIFY, (message, context) => serveVerify(engine.store, message, context.signal));
    engine.register(VERB.LOOK, (message, context) => scrubber.onLook(message, context));
    engine.register(VERB.COPIES, (message) => scrubber.onCopies(message));
    engine.register(VERB.MEND, (message, context) => serveMend(engine, message, context.signal));
    engine.register(VERB.BURY, (message, context) => serveBurial(engine, message, context.from));
    engine.register(VERB.SCRUB, (message) => scrubber.onScrub(message));
    engine.register(VERB.GROUP_SIZES, (message) => serveGroupSizes(engine, message));
    engine.register(VERB.STATUS, () => encodeStatusAnswer(this.status()));
  }

  /** A write; the record that it ended leaves its blocks to the garbage. */
  async #write(message: Message): Promise<Message> {
    const { request, revision, sums } = decodeWriteRequest(message);
    const before = this.engine.store.find(request.key);
    const answer = await this.engine.write(request, { revision, sums });
    if (before !== undefined && answer.replaced?.sequence === before.sequence) this.garbage.hints.replaced(before);
    return encodeWriteAnswer(answer);
  }

  status(): NodeStatus {
    const { engine } = this;
    const facts = engine.store.facts();
    const { phases, member, ...counts } = engine.counts();
    const { serve, ...others } = phases;
    return {
      node: engine.self,
      revision: engine.map.view.revision,
      pid: this.#pid,
      liveBytes: facts.liveBytes,
      volumeBytes: facts.volumeBytes,
      freeBytes: facts.freeBytes,
      totalBytes: facts.totalBytes,
      objects: facts.objects,
      blocks: facts.blocks,
      full: facts.full,
      damaged: facts.damaged,
      serving: serve,
      takingOver: Object.values(others).reduce((sum, count) => sum + count, 0),
      member,
      catchUp: this.catchUp.status(),
      moves: engine.moves.status(),
      counters: {
        ...facts.counters,
        ...numbersOf(counts),
        ...this.catchUp.counters(),
        ...this.garbage.counters(),
        ...this.repair.counters(),
        ...this.leftovers.counters(),
        ...this.scrubber.counters(),
      },
    };
  }
}

/** A block is an orphan for the scrub when it is one for the garbage. */
function orphansOf(garbage: Partial<GarbageLimits> | undefined): Partial<ScrubLimits> {
  return garbage?.orphanMs === undefined ? {} : { orphanMs: garbage.orphanMs };
}

function numbersOf(counts: Readonly<Record<string, unknown>>): Record<string, number> {
  const numbers: Record<string, number> = {};
  for (const [name, value] of Object.entries(counts)) if (typeof value === 'number') numbers[name] = value;
  return numbers;
}
