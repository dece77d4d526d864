import {
  type GroupKey,
  groupNumber,
  messageOf,
  type NodeId,
  type Revision,
  sleep,
  type Timer,
  WebdfsError,
} from '@webdfs/base';
import { revisionOf } from '@webdfs/cluster';
import type { Message } from '@webdfs/wire';
import {
  decodeLearn,
  encodeLearnAnswer,
  encodeLearned,
  type GroupSum,
  type LearnAnswer,
  type LearnOrder,
  type LearnReport,
  MAX_LEARN_GROUPS,
} from './learner-codec.ts';
import { Diverged, Lesson, type LessonOptions, type Movement } from './learner-lesson.ts';
import { sameContents, sumOf } from './learner-pages.ts';
import { hurryOf } from './move-block.ts';
import type { MoveLane, MovePace } from './move-pace.ts';
import type { MovePlan } from './move-plan.ts';
import { Rate } from './rate.ts';
import type { ReplicaHost } from './replica-host.ts';
import type { CatchUpStatus } from './status-codec.ts';
import { Turns } from './turns.ts';
import { VERB } from './verbs.ts';

export interface LearnerLimits {
  /** Groups whose rows are compared at once. */
  readonly lessons: number;
  /** Blocks, and lots of records, copied at once. */
  readonly transfers: number;
  /** A report that its primary does not take is tried again for so long, milliseconds. */
  readonly reportMs: number;
}

export const LEARNER_LIMITS: LearnerLimits = { lessons: 16, transfers: 8, reportMs: 10_000 };

/** What says from whom, in which order and how fast this node learns and teaches. */
export interface Moving {
  readonly plan: MovePlan;
  readonly pace: MovePace;
}

/** A group that is being learned, or was, in one ballot. */
interface Course {
  readonly order: LearnOrder;
  readonly primary: NodeId;
  readonly stop: AbortController;
  /** By this node's own map, which may be behind that of its primary. */
  isWanted: boolean;
  /** Known to be applied here before its log was rebased; see `LessonOptions.complete`. */
  complete: number;
}

interface WorkTurns {
  readonly lessons: Turns;
  /** Of blocks, and of records that travel together. */
  readonly transfers: Turns;
}

function turnsOf({ lessons, transfers }: LearnerLimits): WorkTurns {
  return { lessons: new Turns(lessons), transfers: new Turns(transfers) };
}

/** Orders judged at once. */
const ORDERS_AT_ONCE = 64;
const REPORT_MS = 5_000;
const REPORT_PAUSE_MS = 100;
/** A primary hears so often of a node that learns from it, though groups may take long. */
const PRESENCE_MS = 5_000;

/**
 * This node as a learner (protocol J2, J3): follows the groups that their primaries tell it to learn, compares what it
 * holds, gets what differs, and reports.
 */
export class Learner {
  readonly #host: ReplicaHost;
  readonly #limits: LearnerLimits;
  readonly #lane: MoveLane;
  readonly #plan: MovePlan;
  readonly #courses = new Map<number, Course>();
  readonly #turns: WorkTurns;
  /** Of groups with too few copies to be written: they wait for none that is slowed. */
  readonly #repairTurns: WorkTurns;
  readonly #movement: Movement = { compared: 0, entries: 0, bytes: 0, removed: 0, wasted: 0, missing: 0 };
  readonly #rate: Rate;
  readonly #reports = new Map<NodeId, LearnReport[]>();
  readonly #stop = new AbortController();
  #presence: Timer | undefined;
  #equal = 0;
  /** Some group here may lack its tail: no commit point proves anything. */
  #isSuspect = false;

  constructor(host: ReplicaHost, moving: Moving, limits: Partial<LearnerLimits> = {}) {
    this.#host = host;
    this.#lane = moving.pace.intake;
    this.#plan = moving.plan;
    this.#limits = { ...LEARNER_LIMITS, ...limits };
    this.#turns = turnsOf(this.#limits);
    this.#repairTurns = turnsOf(this.#limits);
    this.#rate = new Rate(host.clock);
  }

  stop(): void {
    this.#presence?.cancel();
    this.#stop.abort(new WebdfsError('CANCELLED', 'the node is stopping'));
    for (const course of this.#courses.values()) course.stop.abort(this.#stop.signal.reason);
    this.#courses.clear();
  }

  /** Courses whose ballot is over end, those that made this node a member as well; and those that no goal wants any more. */
  mapChanged(groups: readonly GroupKey[] | 'all'): void {
    const { map, self } = this.#host;
    const affected = groups === 'all' ? [...this.#courses.values()].map(({ order }) => order) : groups;
    for (const key of affected) {
      const course = this.#courses.get(groupNumber(key));
      if (course === undefined) continue;
      const { ballot, goal } = map.view.group(key);
      const wasWanted = course.isWanted;
      course.isWanted = goal.includes(self);
      if (ballot !== course.order.ballot || (wasWanted && !course.isWanted)) this.#end(course);
    }
  }

  status(): CatchUpStatus {
    const { compared, entries, bytes, missing } = this.#movement;
    const bytesPerSecond = this.#rate.perSecond(bytes);
    const groups = this.#courses.size;
    return { groups, bytes: missing, bytesPerSecond, compared, fetchedEntries: entries, fetchedBytes: bytes };
  }

  /** Since the start: groups found equal at once, entries removed here, bytes that came and were kept, and those in vain. */
  counters(): Readonly<Record<'equalGroups' | 'removedEntries' | 'learnedBytes' | 'wastedBytes', number>> {
    const { removed, bytes, wasted } = this.#movement;
    return { equalGroups: this.#equal, removedEntries: removed, learnedBytes: bytes, wastedBytes: wasted };
  }

  /** LEARN: which groups are equal already, which are accepted. @throws UNAVAILABLE, DISK_FULL, CORRUPT and the like */
  async onLearn(message: Message, from: NodeId): Promise<Message> {
    const { receiver, orders } = decodeLearn(message);
    // refused as a whole, so that no group's pause grows: it asks again each second, and begins as soon as there is space
    if (this.#host.store.facts().full)
      throw new WebdfsError('DISK_FULL', `node ${this.#host.self} has no space to learn`);
    await this.#readMap(orders);
    this.#isSuspect = this.#host.store.facts().suspect;
    const answers: LearnAnswer[] = [];
    for (let at = 0; at < orders.length; at += ORDERS_AT_ONCE) {
      const part = orders.slice(at, at + ORDERS_AT_ONCE);
      answers.push(...(await Promise.all(part.map((order) => this.#judge(order, from, receiver)))));
    }
    return encodeLearnAnswer(answers);
  }

  /** L5: what is ordered in a ballot that this node's map has not reached is judged once it has. */
  async #readMap(orders: readonly LearnOrder[]): Promise<void> {
    let newest = 0;
    for (const { ballot } of orders) newest = Math.max(newest, revisionOf(ballot));
    if (newest > this.#host.map.view.revision) await this.#host.map.readThrough(newest);
  }

  async #judge(order: LearnOrder, from: NodeId, receiver: Revision): Promise<LearnAnswer> {
    const { map, self, log } = this.#host;
    const view = map.view.group(order);
    const isMeant = receiver === this.#host.session() && !this.#stop.signal.aborted;
    if (!isMeant || view.ballot !== order.ballot || view.primary !== from || view.inSync.includes(self))
      return 'refused';
    try {
      return await this.#enrol(order, from);
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      log.info('group cannot be learned', { policy: order.policy, group: order.group, why: messageOf(error) });
      return 'refused';
    }
  }

  async #enrol(order: LearnOrder, primary: NodeId): Promise<LearnAnswer> {
    const number = groupNumber(order);
    const before = this.#courses.get(number);
    if (before?.order.ballot === order.ballot && before.order.base.sequence === order.base.sequence) return 'accepted';
    if (before !== undefined) this.#end(before);
    const isWanted = this.#host.map.view.group(order).goal.includes(this.#host.self);
    const course: Course = { order, primary, stop: new AbortController(), isWanted, complete: 0 };
    this.#courses.set(number, course);
    this.#attend();
    try {
      const isEqual = await this.#follow(course);
      if (this.#courses.get(number) !== course) return 'refused';
      if (isEqual) {
        this.#equal++;
        this.#courses.delete(number);
        return 'equal';
      }
    } catch (error) {
      this.#end(course);
      throw error;
    }
    void this.#turnsFor(order).lessons.run(() => this.#teach(course), this.#turnOf(order));
    return 'accepted';
  }

  #turnsFor(key: GroupKey): WorkTurns {
    return hurryOf(this.#host.map.view, key) === 'move' ? this.#turns : this.#repairTurns;
  }

  #turnOf(key: GroupKey): number {
    return this.#plan.advice(key, this.#host.self).turn;
  }

  /** Begins to take the group's new records. @returns whether it holds all of the old ones */
  async #follow(course: Course): Promise<boolean> {
    const { store } = this.#host;
    const { order } = course;
    const log = store.log(order);
    const isMember = log.mark?.role !== 'learner' && !this.#isSuspect;
    // above what the primary has committed: of a history that was given up
    if (log.commit > order.base.sequence && log.commit > order.sum.commit) await store.drop(order);
    else if (isMember) course.complete = log.commit;
    const ours = await sumOf(store, order);
    const isEqual = isMember && ours.commit === order.sum.commit && sameContents(ours, order.sum);
    const asIs = isEqual && log.commit === order.base.sequence && log.last === log.commit;
    await this.#host.follow(order, order.ballot, { base: order.base, asIs });
    return isEqual;
  }

  async #teach(course: Course): Promise<void> {
    const { order, primary, complete, stop } = course;
    if (stop.signal.aborted) return;
    const { policy, group, ballot, sum } = order;
    const key = { policy, group };
    const sources = (): readonly NodeId[] => this.#plan.advice(key, this.#host.self).sources;
    const { signal } = stop;
    const options = { key, ballot, primary, complete, movement: this.#movement, lane: this.#lane, sources, signal };
    let outcome: LearnReport['outcome'] = 'ready';
    try {
      await this.#lesson(options, sum);
    } catch (error) {
      if (stop.signal.aborted) return;
      if (!(error instanceof WebdfsError)) throw error;
      this.#host.log.warn('group was not learned', { policy, group, code: error.code, why: messageOf(error) });
      outcome = 'failed';
    }
    this.#courses.delete(groupNumber(key));
    this.#report(primary, { ...key, ballot, outcome });
  }

  async #lesson(options: Omit<LessonOptions, 'inTurn'>, sum: GroupSum): Promise<void> {
    const turn = this.#turnOf(options.key);
    const { transfers } = this.#turnsFor(options.key);
    const lesson = new Lesson(this.#host, { ...options, inTurn: (work) => transfers.run(work, turn) });
    try {
      await lesson.run(sum);
    } catch (error) {
      // of another history: the next attempt begins with nothing
      if (error instanceof Diverged && !options.signal.aborted) await this.#host.store.drop(options.key);
      throw error;
    }
  }

  #end(course: Course): void {
    course.stop.abort(new WebdfsError('CANCELLED', 'the ballot is over'));
    const number = groupNumber(course.order);
    if (this.#courses.get(number) === course) this.#courses.delete(number);
  }

  /** A group may take minutes at the pace that is allowed: meanwhile its primary hears that it is being learned. */
  #attend(): void {
    if (this.#presence !== undefined || this.#stop.signal.aborted) return;
    this.#presence = this.#host.clock.after(PRESENCE_MS, () => {
      this.#presence = undefined;
      if (this.#courses.size === 0) return;
      for (const primary of new Set([...this.#courses.values()].map((course) => course.primary))) {
        void this.#sayPresent(primary);
      }
      this.#attend();
    });
  }

  async #sayPresent(primary: NodeId): Promise<void> {
    const message = encodeLearned(this.#host.session(), []);
    try {
      await this.#host.link(primary).call(VERB.LEARNED, message, { deadlineMs: REPORT_MS, signal: this.#stop.signal });
    } catch (error) {
      // who is not there hears nothing: it begins the groups anew
      if (!(error instanceof WebdfsError)) throw error;
    }
  }

  /** Reports of one turn travel together; one call to a node at a time. */
  #report(primary: NodeId, report: LearnReport): void {
    const waiting = this.#reports.get(primary);
    if (waiting !== undefined) waiting.push(report);
    else {
      this.#reports.set(primary, [report]);
      this.#host.clock.soon(() => void this.#sendReports(primary));
    }
  }

  async #sendReports(primary: NodeId): Promise<void> {
    const { clock, log } = this.#host;
    const until = clock.monotonic() + this.#limits.reportMs;
    let reports = this.#reports.get(primary) ?? [];
    while (reports.length > 0 && !this.#stop.signal.aborted) {
      const part = reports.slice(0, MAX_LEARN_GROUPS);
      try {
        const message = encodeLearned(this.#host.session(), part);
        await this.#host
          .link(primary)
          .call(VERB.LEARNED, message, { deadlineMs: REPORT_MS, signal: this.#stop.signal });
        reports.splice(0, part.length);
      } catch (error) {
        if (!(error instanceof WebdfsError)) throw error;
        // the primary finds out by itself that nothing is heard of these groups
        if (this.#stop.signal.aborted || clock.monotonic() > until) {
          log.warn('reports were not taken', { node: primary, groups: reports.length, why: messageOf(error) });
          break;
        }
        await sleep(clock, REPORT_PAUSE_MS);
      }
      reports = this.#reports.get(primary) ?? [];
    }
    this.#reports.delete(primary);
  }
}
