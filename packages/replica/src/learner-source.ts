import {
  type Ballot,
  codeOf,
  type GroupKey,
  groupNumber,
  messageOf,
  type NodeId,
  type Revision,
  type Timer,
  WebdfsError,
} from '@webdfs/base';
import { allGroups, type MapView } from '@webdfs/cluster';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import {
  decodeLearnAnswer,
  decodeLearned,
  decodePageRequest,
  encodeLearn,
  encodePage,
  type LearnAnswer,
  type LearnOrder,
  MAX_LEARN_GROUPS,
} from './learner-codec.ts';
import { isOutOfOrder, lacking, Pauses } from './learner-needs.ts';
import { pageOf, sumOf } from './learner-pages.ts';
import type { MovePlan } from './move-plan.ts';
import type { ReplicaHost } from './replica-host.ts';
import { REQUEST_FORMAT } from './request-codec.ts';
import { VERB } from './verbs.ts';

export interface SourceLimits {
  /** Groups that one node learns from here at once; each holds the new records it lacks in memory. */
  readonly groupsPerNode: number;
  /** Groups in one order. */
  readonly groupsPerOrder: number;
  /** Groups that lack something are looked at again after so long, milliseconds. */
  readonly lookMs: number;
  /** At every so many of these looks all groups are: nothing depends on hearing of every change. */
  readonly looksAtAll: number;
  /** A learner of which nothing was heard for so long is given up. */
  readonly silenceMs: number;
  /** Pause after a group's first failure with a node; doubles up to the other. */
  readonly firstPauseMs: number;
  readonly lastPauseMs: number;
}

export const SOURCE_LIMITS: SourceLimits = {
  groupsPerNode: 512,
  groupsPerOrder: 256,
  lookMs: 1_000,
  looksAtAll: 30,
  silenceMs: 30_000,
  firstPauseMs: 250,
  lastPauseMs: 300_000,
};

/** A group that is being taught to a node. */
interface Pupil {
  readonly key: GroupKey;
  readonly ballot: Ballot;
  readonly session: Revision;
  /** ordered: it learns · ready: it has everything, its place in the map is being asked for. */
  state: 'ordered' | 'ready';
}

/** What is under way with one node. */
interface School {
  readonly node: NodeId;
  readonly pupils: Map<number, Pupil>;
  readonly waiting: Map<number, GroupKey>;
  isOrdering: boolean;
  /** False after a call that did not get through: then one group tries the way for all. */
  isReached: boolean;
  heardAt: number;
}

const CALL_MS = 30_000;
/** Before a change of the map that did not come about is proposed again. */
const REFUSED_PAUSE_MS = 100;
/** Before a node that could not be reached is tried again. */
const UNREACHED_PAUSE_MS = 100;
const TAKEN: Message = { head: Uint8Array.of(REQUEST_FORMAT), attached: NO_ATTACHMENT };

/**
 * The primaries' side of learning (protocol J1, J4): finds the groups of this node that lack a member, orders the nodes that
 * should be members to learn, many groups in one call, serves their pages, and has them added once they are ready.
 */
export class LearnerSource {
  readonly #host: ReplicaHost;
  readonly #limits: SourceLimits;
  readonly #plan: Pick<MovePlan, 'advice'>;
  /** Groups that had something to be done about when they were last looked at. */
  readonly #unsettled = new Map<number, GroupKey>();
  readonly #schools = new Map<NodeId, School>();
  readonly #pauses: Pauses;
  #timer: Timer | undefined;
  #isStopped = false;
  #isStarting = false;
  #looks = 0;

  constructor(host: ReplicaHost, plan: Pick<MovePlan, 'advice'>, limits: Partial<SourceLimits> = {}) {
    this.#host = host;
    this.#plan = plan;
    this.#limits = { ...SOURCE_LIMITS, ...limits };
    this.#pauses = new Pauses(host, this.#limits);
  }

  start(): void {
    this.#lookAgain();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** Groups that this node teaches, and those that wait. */
  counts(): { readonly teaching: number; readonly waiting: number } {
    let teaching = 0;
    let waiting = 0;
    for (const school of this.#schools.values()) {
      teaching += school.pupils.size;
      waiting += school.waiting.size;
    }
    return { teaching, waiting };
  }

  mapChanged(view: MapView, groups: readonly GroupKey[] | 'all'): void {
    for (const key of groups === 'all' ? allGroups(view.map) : groups) this.consider(key);
  }

  /** The engine dropped a learner. */
  lost(key: GroupKey, node: NodeId, why: string): void {
    if (this.#isStarting) return;
    const pupil = this.#forget(key, node);
    if (pupil === undefined) return;
    this.#host.log.info('learner lost', { policy: key.policy, group: key.group, node, why });
    this.#pauses.lengthen(key, node);
  }

  /** The map did not take the learner that was ready; it goes on learning. */
  refused(key: GroupKey, node: NodeId): void {
    this.#host.clock.after(REFUSED_PAUSE_MS, () => {
      const pupil = this.#schools.get(node)?.pupils.get(groupNumber(key));
      if (!this.#isStopped && pupil?.state === 'ready' && this.#isCurrent(pupil, node))
        this.#host.readyLearner(key, node);
    });
  }

  /** Looks at one group: whom it lacks, and what became of the learner it has. */
  consider(key: GroupKey): void {
    if (this.#isStopped) return;
    const wasUnsettled = this.#unsettled.delete(groupNumber(key));
    const isServed = this.#host.serving(key) !== 0;
    let isTaught = false;
    for (const school of this.#schools.values()) {
      if (this.#isTaught(school, key, isServed)) isTaught = true;
      if (!isServed) school.waiting.delete(groupNumber(key));
    }
    // a lease that ran out may be renewed without any news of the map
    const isAway = wasUnsettled && !isServed && this.#host.map.view.group(key).primary === this.#host.self;
    if (isTaught || isAway) this.#unsettled.set(groupNumber(key), key);
    else if (isServed) this.#seek(key);
  }

  /** Whether the group still has its learner there. */
  #isTaught(school: School, key: GroupKey, isServed: boolean): boolean {
    const pupil = school.pupils.get(groupNumber(key));
    if (pupil === undefined) return false;
    if (this.#isCurrent(pupil, school.node)) {
      // it may have become ready, or been refused, while the group was not served: the engine knows whether it is asked for
      if (pupil.state === 'ready') this.#host.readyLearner(key, school.node);
      return true;
    }
    // a primary that yields (L6) takes its ballot, and its learner, again if the map refuses its successor
    if (!isServed && this.#mayReturn(pupil, school.node)) return true;
    school.pupils.delete(groupNumber(key));
    if (isServed) this.#host.failLearner(key, school.node);
    if (this.#host.map.view.group(key).inSync.includes(school.node)) this.#pauses.forget(key, school.node);
    this.#orderSoon(school);
    return false;
  }

  #seek(key: GroupKey): void {
    const { map, self } = this.#host;
    const view = map.view.group(key);
    // what is whole can wait; what lacks copies cannot
    if (map.view.map.paused === true && view.inSync.length >= view.copies) return;
    const isSettled = lacking(view).length === 0 && !isOutOfOrder(view);
    if (!isSettled) this.#unsettled.set(groupNumber(key), key);
    const node = this.#firstOf(
      key,
      lacking(view).filter(
        (each) => each !== self && map.view.live(each) !== undefined && !this.#pauses.isPaused(key, each),
      ),
    );
    if (node === undefined) {
      if (isOutOfOrder(view)) this.#host.arrange(key);
      return;
    }
    const school = this.#school(node);
    school.waiting.set(groupNumber(key), key);
    this.#orderSoon(school);
  }

  /** Whom the plan lets have it first, so that it can pass it on. */
  #firstOf(key: GroupKey, nodes: readonly NodeId[]): NodeId | undefined {
    if (nodes.length < 2) return nodes[0];
    const depths = new Map(nodes.map((node) => [node, this.#plan.advice(key, node).depth]));
    return nodes.toSorted((a, b) => depths.get(a)! - depths.get(b)!)[0];
  }

  // ---- orders ----

  #school(node: NodeId): School {
    let school = this.#schools.get(node);
    if (school === undefined) {
      const heardAt = this.#host.clock.monotonic();
      school = { node, pupils: new Map(), waiting: new Map(), isOrdering: false, isReached: true, heardAt };
      this.#schools.set(node, school);
    }
    return school;
  }

  /** At the end of the turn, so that all groups of one change of the map travel together. */
  #orderSoon(school: School): void {
    if (school.isOrdering || school.waiting.size === 0) return;
    school.isOrdering = true;
    this.#host.clock.soon(() => {
      void this.#order(school).finally(() => {
        if (school.isReached) this.#ordered(school);
        else this.#host.clock.after(UNREACHED_PAUSE_MS, () => this.#ordered(school));
      });
    });
  }

  #ordered(school: School): void {
    school.isOrdering = false;
    if (!this.#isStopped && school.pupils.size < this.#limits.groupsPerNode) this.#orderSoon(school);
  }

  async #order(school: School): Promise<void> {
    const room = this.#limits.groupsPerNode - school.pupils.size;
    const limit = school.isReached ? Math.min(room, this.#limits.groupsPerOrder, MAX_LEARN_GROUPS) : Math.min(room, 1);
    const { view } = this.#host.map;
    const waiting = Array.from(school.waiting.values(), (key) => {
      return { key, turn: this.#plan.advice(key, school.node).turn };
    });
    const next = waiting
      .sort((a, b) => a.turn - b.turn)
      .slice(0, Math.max(0, limit))
      .map(({ key }) => key);
    for (const key of next) school.waiting.delete(groupNumber(key));
    const session = view.live(school.node)?.session;
    if (session === undefined || next.length === 0 || this.#isStopped) return;
    const orders = await Promise.all(next.map((key) => this.#enrol(school, key, session)));
    await this.#send(
      school,
      orders.filter((order) => order !== undefined),
      session,
    );
  }

  async #enrol(school: School, key: GroupKey, session: Revision): Promise<LearnOrder | undefined> {
    const ballot = this.#host.serving(key);
    if (ballot === 0 || !lacking(this.#host.map.view.group(key)).includes(school.node)) return undefined;
    this.#isStarting = true;
    const base = this.#host.startLearner(key, school.node, session);
    this.#isStarting = false;
    if (base === undefined) {
      this.#pauses.lengthen(key, school.node);
      return undefined;
    }
    const pupil: Pupil = { key, ballot, session, state: 'ordered' };
    if (school.pupils.size === 0) school.heardAt = this.#host.clock.monotonic();
    school.pupils.set(groupNumber(key), pupil);
    try {
      return { policy: key.policy, group: key.group, ballot, base, sum: await sumOf(this.#host.store, key) };
    } catch (error) {
      // a primary whose store fails teaches nobody
      if (!(error instanceof WebdfsError)) throw error;
      this.#host.log.warn('group cannot be taught', { ...key, code: error.code, why: messageOf(error) });
      this.#giveUp(school, { ...key, ballot });
      return undefined;
    }
  }

  async #send(school: School, orders: readonly LearnOrder[], session: Revision): Promise<void> {
    if (orders.length === 0) return;
    const { log } = this.#host;
    let answers: LearnAnswer[];
    try {
      const message = encodeLearn(session, orders);
      answers = decodeLearnAnswer(
        await this.#host.link(school.node).call(VERB.LEARN, message, { deadlineMs: CALL_MS }),
      );
      if (answers.length !== orders.length) throw new WebdfsError('CORRUPT', 'not as many answers as orders');
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      log.debug('orders were not taken', { node: school.node, code: codeOf(error), why: messageOf(error) });
      school.isReached = false;
      for (const order of orders) this.#takeBack(school, order);
      return;
    }
    school.isReached = true;
    school.heardAt = this.#host.clock.monotonic();
    for (const [i, order] of orders.entries()) {
      if (answers[i] === 'equal') this.#ready(school, order);
      else if (answers[i] === 'refused') this.#giveUp(school, order);
    }
  }

  /** The order did not arrive: nobody is to blame. */
  #takeBack(school: School, order: LearnOrder): void {
    const key: GroupKey = { policy: order.policy, group: order.group };
    this.#forget(key, school.node);
    this.#host.failLearner(key, school.node);
    school.waiting.set(groupNumber(key), key);
  }

  #ready(school: School, report: GroupKey & { readonly ballot: Ballot }): void {
    const pupil = school.pupils.get(groupNumber(report));
    if (pupil === undefined || pupil.ballot !== report.ballot) return;
    pupil.state = 'ready';
    if (this.#isCurrent(pupil, school.node)) this.#host.readyLearner(pupil.key, school.node);
  }

  #giveUp(school: School, report: GroupKey & { readonly ballot: Ballot }): void {
    const pupil = school.pupils.get(groupNumber(report));
    if (pupil === undefined || pupil.ballot !== report.ballot) return;
    this.#forget(pupil.key, school.node);
    this.#host.failLearner(pupil.key, school.node);
    this.#pauses.lengthen(pupil.key, school.node);
  }

  #forget(key: GroupKey, node: NodeId): Pupil | undefined {
    const school = this.#schools.get(node);
    const pupil = school?.pupils.get(groupNumber(key));
    school?.pupils.delete(groupNumber(key));
    return pupil;
  }

  /** Not served now, but by the map still this node's in the pupil's ballot. */
  #mayReturn({ key, ballot, session }: Pupil, node: NodeId): boolean {
    const { view } = this.#host.map;
    return view.group(key).ballot === ballot && view.live(node)?.session === session;
  }

  /** Still the same run of the node, the same configuration of the group, and a goal that wants the node. */
  #isCurrent({ key, ballot, session }: Pupil, node: NodeId): boolean {
    const { view } = this.#host.map;
    return (
      this.#host.serving(key) === ballot &&
      view.live(node)?.session === session &&
      lacking(view.group(key)).includes(node)
    );
  }

  // ---- what learners say ----

  /** LEARNED: which groups are ready, which were given up. @throws CORRUPT, TOO_LARGE */
  onLearned(message: Message, from: NodeId): Message {
    const { sender, reports } = decodeLearned(message);
    const school = this.#schools.get(from);
    if (school === undefined) return TAKEN;
    school.heardAt = this.#host.clock.monotonic();
    for (const report of reports) {
      if (school.pupils.get(groupNumber(report))?.session !== sender) continue;
      if (report.outcome === 'ready') this.#ready(school, report);
      else this.#giveUp(school, report);
    }
    return TAKEN;
  }

  /** PAGE. @throws CONFLICT if the node is not to learn it any more, NOT_PRIMARY, CORRUPT, TOO_LARGE */
  async onPage(message: Message, from: NodeId): Promise<{ readonly group: GroupKey; readonly answer: Message }> {
    const request = decodePageRequest(message);
    const school = this.#schools.get(from);
    if (school !== undefined) school.heardAt = this.#host.clock.monotonic();
    if (school?.pupils.get(groupNumber(request))?.ballot !== request.ballot) {
      throw new WebdfsError('CONFLICT', `node ${from} is not to learn group ${request.policy}/${request.group} now`);
    }
    return { group: request, answer: encodePage(await pageOf(this.#host, request)) };
  }

  // ---- time ----

  #lookAgain(): void {
    if (this.#isStopped) return;
    const at = this.#host.clock.monotonic();
    this.#pauses.expire();
    for (const school of this.#schools.values()) {
      if (at > school.heardAt + this.#limits.silenceMs) this.#dismiss(school);
      if (school.pupils.size === 0 && school.waiting.size === 0 && !school.isOrdering)
        this.#schools.delete(school.node);
    }
    const all = this.#looks++ % this.#limits.looksAtAll === 0;
    for (const key of all ? this.#host.served() : [...this.#unsettled.values()]) this.consider(key);
    this.#timer = this.#host.clock.after(this.#limits.lookMs, () => this.#lookAgain());
  }

  /** Nothing was heard of a node that learns: all its groups begin anew. */
  #dismiss(school: School): void {
    for (const pupil of school.pupils.values())
      if (pupil.state === 'ordered') this.#giveUp(school, { ...pupil.key, ballot: pupil.ballot });
  }
}
