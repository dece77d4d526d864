import { type GroupKey, groupNumber, messageOf, sleep, type Timer, WebdfsError } from '@webdfs/base';
import type { Pace } from '@webdfs/store';
import type { CallContext, Message } from '@webdfs/wire';
import { decodePageRequest, encodePage } from '../learner-codec.ts';
import { makePage } from '../learner-pages.ts';
import { GARBAGE_LIMITS } from '../garbage.ts';
import { Rate } from '../rate.ts';
import type { ReplicaHost } from '../replica-host.ts';
import { GroupAudit } from './group-audit.ts';
import { decodeLooks, encodeLookAnswer } from './look-codec.ts';
import { lookAt } from './looking.ts';
import { type Failure, nodeReport, resultOf } from './node-report.ts';
import { adopt, dueAt, emptyState, keep, packState, type PassState, unpackState } from './pass.ts';
import { decodeScrubRequest, encodeNodeScrub, type NodeScrub } from './scrub-codec.ts';
import { type Survey, survey } from './survey.ts';

export interface ScrubLimits {
  /** A pass begins by itself at each whole multiple of this, milliseconds since 1970; Infinity: never. */
  readonly everyMs: number;
  /** A node that has just started has other things to do: it begins none by itself for so long. */
  readonly restMs: number;
  /** What a node reads of its disk for such a pass. */
  readonly bytesPerSecond: number;
  /** Groups counted at once. */
  readonly groupsAtOnce: number;
  /** Between looks for something to do, milliseconds. */
  readonly lookMs: number;
  /** Between looks at what all nodes have counted. */
  readonly surveyMs: number;
  /** Between writes of how far it is. */
  readonly saveMs: number;
  /** Whether a record is an object, by its key: what is counted as one. */
  readonly isObject: (key: Uint8Array) => boolean;
  /** A block that no record names may still be under way for so long. */
  readonly orphanMs: number;
}

export const SCRUB_LIMITS: ScrubLimits = {
  everyMs: Number.POSITIVE_INFINITY,
  restMs: 600_000,
  bytesPerSecond: 20_000_000,
  groupsAtOnce: 2,
  lookMs: 1_000,
  surveyMs: 60_000,
  saveMs: 5_000,
  isObject: () => true,
  orphanMs: GARBAGE_LIMITS.orphanMs,
};

const FILE = 'scrub';
/** What a group costs, as bytes read, though it may be empty: its members are asked for their rows. */
const GROUP_COST = 65_536;
/** After a group could not be counted: doubled each time. */
const FIRST_PAUSE_MS = 500;
const LAST_PAUSE_MS = 60_000;

/**
 * Counts and verifies all copies, pass after pass, at a pace (design, section 7): each node counts the groups of which it
 * is primary, at all their members, and reads its own volumes from end to end. What it has counted stays on its disk, so
 * that a pass goes on where it was after a restart; a group whose members have changed since is counted anew.
 *
 * Nobody leads a pass: nodes hear of it from whoever begins it and from each other, and whoever asks them all knows how
 * far it is.
 */
export class Scrubber {
  readonly #host: ReplicaHost;
  readonly #limits: ScrubLimits;
  readonly #stop = new AbortController();
  readonly #rate: Rate;
  readonly #failures = new Map<number, Failure>();
  readonly #busy = new Set<number>();
  #queue: GroupKey[] = [];
  #state: PassState = emptyState();
  #ofPass = new AbortController();
  #pace: { readonly bytesPerSecond: number; readonly pace: Pace } | undefined;
  #wake: (() => void) | undefined;
  #bytesRead = 0;
  #isLoaded = false;
  #isDirty = false;
  #readsVolumes = false;
  #startedMs = 0;
  #timers: Timer[] = [];

  constructor(host: ReplicaHost, limits: Partial<ScrubLimits> = {}) {
    this.#host = host;
    this.#limits = { ...SCRUB_LIMITS, ...limits };
    this.#rate = new Rate(host.clock);
  }

  start(): void {
    this.#startedMs = this.#host.clock.monotonic();
    this.#stop.signal.addEventListener('abort', () => this.#wake?.(), { once: true });
    void this.#run().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) throw error;
    });
    this.#repeat(this.#limits.saveMs, () => this.#save());
    this.#repeat(this.#limits.surveyMs, () => this.#compare());
  }

  stop(): void {
    const reason = new WebdfsError('CANCELLED', 'the node is stopping');
    this.#stop.abort(reason);
    this.#ofPass.abort(reason);
    for (const timer of this.#timers) timer.cancel();
  }

  /** Numbers for metrics and tests. */
  counters(): Readonly<Record<'scrubbedBytes' | 'countedGroups', number>> {
    return { scrubbedBytes: this.#bytesRead, countedGroups: this.#state.results.size };
  }

  #repeat(ms: number, work: () => Promise<void>): void {
    const index = this.#timers.length;
    const again = (): void => {
      this.#timers[index] = this.#host.clock.after(ms, () => {
        void work().then(() => {
          if (!this.#stop.signal.aborted) again();
        });
      });
    };
    this.#timers.push({ cancel: () => undefined });
    again();
  }

  // ---- what others ask ----

  /** SCRUB: takes over a later pass, and tells how far this node is. @throws CORRUPT, INVALID */
  async onScrub(message: Message): Promise<Message> {
    const { revision, pass, completion } = decodeScrubRequest(message);
    const { map, clock } = this.#host;
    if (!this.#isLoaded) throw new WebdfsError('UNAVAILABLE', 'the node is starting', { retryAfterMs: 100 });
    if (revision > map.view.revision) await map.readThrough(revision);
    if (pass !== undefined && adopt(this.#state, pass, clock.now())) this.#begun();
    if (completion !== undefined && completion.pass > (this.#state.completion?.pass ?? 0)) {
      this.#state.completion = completion;
      this.#isDirty = true;
      // all that this node should have was found here, or put here
      if (completion.clean && completion.pass === this.#state.pass?.id) void this.#settle();
    }
    return encodeNodeScrub(this.report());
  }

  async #settle(): Promise<void> {
    const { store, log } = this.#host;
    try {
      const settled = await store.settleDamage();
      if (settled > 0) log.info('damage settled: nothing needs what lies there', { places: settled });
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      log.warn('damage not settled', { why: messageOf(error) });
    }
  }

  /** LOOK. @throws CORRUPT, INVALID, TOO_LARGE, DISK_FAILED */
  async onLook(message: Message, context: CallContext): Promise<Message> {
    const { items, bytesPerSecond } = decodeLooks(message);
    const pace = bytesPerSecond === 0 ? undefined : this.#paceOf(bytesPerSecond);
    const answer = await lookAt(this.#host.store, items, { pace, signal: context.signal });
    for (const { bytes } of answer.looks) this.#bytesRead += bytes;
    return encodeLookAnswer(answer);
  }

  /** COPIES. @throws CORRUPT, TOO_LARGE */
  async onCopies(message: Message): Promise<Message> {
    return encodePage(await makePage(this.#host, decodePageRequest(message)));
  }

  /** One meter for all that is read here, whoever asks for it. */
  #paceOf(bytesPerSecond: number): Pace {
    if (this.#pace?.bytesPerSecond !== bytesPerSecond) {
      this.#pace = { bytesPerSecond, pace: this.#host.store.pace({ bytesPerSecond, signal: this.#stop.signal }) };
    }
    return this.#pace.pace;
  }

  /** What this node has counted, by the map of this moment. */
  report(): NodeScrub {
    const bytesPerSecond = this.#rate.perSecond(this.#bytesRead);
    return nodeReport(this.#host, { state: this.#state, failures: this.#failures, bytesPerSecond });
  }

  // ---- the work ----

  async #run(): Promise<void> {
    this.#state = unpackState(await this.#kept());
    this.#isLoaded = true;
    while (!this.#stop.signal.aborted) {
      this.#beginDue();
      const { pass } = this.#state;
      const next = pass === undefined ? undefined : this.#next();
      if (pass !== undefined && next === undefined && this.#busy.size === 0) this.#readVolumes();
      if (next === undefined || this.#busy.size >= this.#limits.groupsAtOnce) await this.#wait();
      else void this.#count(next).finally(() => this.#wake?.());
    }
  }

  async #kept(): Promise<Uint8Array | undefined> {
    try {
      return await this.#host.store.loadFile(FILE);
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      this.#host.log.warn('what was counted cannot be read: it is counted anew', { why: messageOf(error) });
      return undefined;
    }
  }

  /** Until something ends or begins, or it is time to look again. */
  async #wait(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#host.clock.after(this.#limits.lookMs, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#wake = undefined;
  }

  #beginDue(): void {
    const { everyMs, restMs, bytesPerSecond } = this.#limits;
    if (this.#host.clock.monotonic() < this.#startedMs + restMs) return;
    const now = this.#host.clock.now();
    const id = dueAt(now, everyMs);
    if (id > 0 && adopt(this.#state, { id, bytesPerSecond }, now)) this.#begun();
  }

  #begun(): void {
    this.#ofPass.abort(new WebdfsError('CANCELLED', 'a later pass has begun'));
    this.#ofPass = new AbortController();
    this.#failures.clear();
    this.#queue = [];
    this.#isDirty = true;
    const { id, bytesPerSecond } = this.#state.pass!;
    this.#host.log.info('pass begun', { pass: new Date(id).toISOString(), bytesPerSecond });
    void this.#save();
    this.#wake?.();
  }

  /** The next group to count. All are looked through again only when none is left of the last look. */
  #next(): GroupKey | undefined {
    for (let isFresh = false; ; isFresh = true) {
      for (let group = this.#queue.pop(); group !== undefined; group = this.#queue.pop()) {
        if (this.#isToDo(group)) return group;
      }
      if (isFresh) return undefined;
      this.#queue = [...this.#host.served()].filter((group) => this.#isToDo(group)).toReversed();
    }
  }

  #isToDo(group: GroupKey): boolean {
    const number = groupNumber(group);
    if (
      this.#busy.has(number) ||
      this.#host.serving(group) === 0 ||
      resultOf(this.#host, this.#state, group) !== undefined
    )
      return false;
    return (this.#failures.get(number)?.againAt ?? 0) <= this.#host.clock.monotonic();
  }

  async #count(group: GroupKey): Promise<void> {
    const number = groupNumber(group);
    const { signal } = this.#ofPass;
    const { bytesPerSecond } = this.#state.pass!;
    this.#busy.add(number);
    try {
      await this.#paceOf(bytesPerSecond).take(GROUP_COST);
      const { isObject, orphanMs } = this.#limits;
      const audit = new GroupAudit(this.#host, group, { bytesPerSecond, isObject, orphanMs, signal });
      const { tally, members } = await audit.run();
      if (signal.aborted) return;
      keep(this.#state, number, { members: members.join(), tally });
      this.#failures.delete(number);
      this.#isDirty = true;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof WebdfsError)) throw error;
      this.#failed(group, error);
    } finally {
      this.#busy.delete(number);
    }
  }

  #failed(group: GroupKey, error: WebdfsError): void {
    const number = groupNumber(group);
    const count = (this.#failures.get(number)?.count ?? 0) + 1;
    const pauseMs = Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(count - 1, 16));
    const againAt = this.#host.clock.monotonic() + pauseMs;
    this.#failures.set(number, { count, againAt, why: messageOf(error) });
    const fields = { policy: group.policy, group: group.group, code: error.code, why: messageOf(error) };
    this.#host.log.debug('group not counted', fields);
  }

  /** The other half of a pass: every byte of this node's volumes, whether a row points to it or not. */
  #readVolumes(): void {
    if (this.#readsVolumes || this.#state.areVolumesRead) return;
    this.#readsVolumes = true;
    const { signal } = this.#ofPass;
    const { bytesPerSecond } = this.#state.pass!;
    const { store, log } = this.#host;
    void store
      .scrub({ bytesPerSecond, signal, done: this.#state.volumes })
      .then(
        () => {
          if (signal.aborted) return;
          this.#state.areVolumesRead = true;
          this.#isDirty = true;
        },
        async (error: unknown) => {
          if (signal.aborted || this.#stop.signal.aborted) return;
          log.warn('volumes could not be read', { why: messageOf(error) });
          await sleep(this.#host.clock, LAST_PAUSE_MS, this.#stop.signal).catch(() => undefined);
        },
      )
      .finally(() => {
        this.#readsVolumes = false;
        this.#wake?.();
      });
  }

  // ---- what is kept, and told ----

  async #save(): Promise<void> {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    try {
      await this.#host.store.saveFile(FILE, packState(this.#state));
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      this.#isDirty = true;
      this.#host.log.warn('progress of the scrub not kept', { why: messageOf(error) });
    }
  }

  /** One node, the first that is up, looks whether all is counted, and tells it; nodes that were away hear of the pass. */
  async #compare(): Promise<void> {
    const { map, self } = this.#host;
    const { pass, completion } = this.#state;
    if (pass === undefined || completion?.pass === pass.id) return;
    const first = map.view.nodes().find((node) => map.view.live(node) !== undefined);
    if (first !== self) return;
    try {
      await this.survey();
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      this.#host.log.debug('nodes could not be asked for their scrub', { why: messageOf(error) });
    }
  }

  /** What all nodes together have counted. */
  async survey(): Promise<Survey> {
    const { pass } = this.#state;
    return await survey(this.#host, pass === undefined ? {} : { pass });
  }
}
