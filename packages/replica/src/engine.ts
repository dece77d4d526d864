import {
  type Ballot,
  type Clock,
  type GroupKey,
  type Log,
  type NodeId,
  type Random,
  type Revision,
  WebdfsError,
} from '@webdfs/base';
import type { LocalMap, NodeLease } from '@webdfs/cluster';
import { hashKey } from '@webdfs/placement';
import type { LogEntry, Store } from '@webdfs/store';
import type { CallContext, Incoming, Link, Message, Outgoing } from '@webdfs/wire';
import {
  decodePutBlock,
  decodeReadBlock,
  encodePutBlockAnswer,
  packBlockOwner,
  type PutBlockHead,
} from './block-codec.ts';
import { copyBlock, fromAny, serveBlock } from './block-transfer.ts';
import { serveEntries } from './entry-fetch.ts';
import { countGroups, type GroupCounts } from './group-counts.ts';
import { GroupLoop } from './group-loop.ts';
import type { EngineHooks } from './hooks.ts';
import { decodeListRequest, encodeListAnswer, type NodeListAnswer, type NodeListRequest } from './list-codec.ts';
import { listPage } from './list-page.ts';
import type { ProtocolMessage } from './messages.ts';
import { REPLICA_DEFAULTS, type ReplicaParameters } from './parameters.ts';
import { decodeStage, type PipelineOptions, stageBody, STAGED_ANSWER } from './pipeline.ts';
import { MoveMeter } from './move-meter.ts';
import { PostOffice } from './post-office.ts';
import { cannotServe } from './proposals.ts';
import { ReadBuffers } from './read-buffers.ts';
import { Reader } from './reader.ts';
import type { LogBase, ReplicaHost } from './replica-host.ts';
import { decodeReadRequest, decodeWriteRequest, encodeReadAnswer, encodeWriteAnswer } from './request-codec.ts';
import type { KnownWrite, RequestTable } from './request-table.ts';
import type { ReadAnswer, ReadRequest, WriteAnswer, WriteRequest } from './requests.ts';
import type { GroupState, LearnerSlot } from './state.ts';
import { VERB } from './verbs.ts';

export interface EngineOptions {
  readonly self: NodeId;
  readonly store: Store;
  readonly map: LocalMap;
  readonly lease: NodeLease;
  readonly link: (node: NodeId) => Link;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly parameters?: Partial<ReplicaParameters>;
  readonly hooks?: EngineHooks;
}

/** A call that others in this room answer, by its verb. */
export type CallHandler = (message: Message, context: CallContext) => Promise<Message> | Message;

/**
 * Replication on one node: thousands of groups, each a primary's or a member's steps, with everything they need of disk, map
 * and network. Reads and writes of this node's own gateway are direct calls; those of others come through the handlers.
 */
export class ReplicaEngine implements ReplicaHost {
  readonly self: NodeId;
  readonly store: Store;
  readonly map: LocalMap;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly parameters: ReplicaParameters;
  readonly moves: MoveMeter;
  readonly #link: (node: NodeId) => Link;
  readonly #lease: NodeLease;
  readonly #hooks: EngineHooks;
  readonly #loop: GroupLoop;
  readonly #posts: PostOffice;
  readonly #reader: Reader;
  readonly #pipeline: PipelineOptions;
  readonly #buffers = new ReadBuffers();
  readonly #calls = new Map<number, CallHandler>();
  #pulse: { cancel(): void } | undefined;

  constructor(options: EngineOptions) {
    const { self, store, map, lease, link, clock, random, log, hooks = {} } = options;
    this.self = self;
    this.store = store;
    this.map = map;
    this.clock = clock;
    this.random = random;
    this.log = log;
    this.moves = new MoveMeter(clock);
    this.#link = link;
    this.#lease = lease;
    this.#hooks = hooks;
    this.parameters = { ...REPLICA_DEFAULTS, ...options.parameters };
    const parameters = this.parameters;
    const obtain = (entry: LogEntry): Promise<void> => this.obtain(entry);
    this.#loop = new GroupLoop({ self, store, map, lease, link, clock, log, parameters, hooks, obtain });
    this.#posts = new PostOffice({ self, map, log, parameters, loop: this.#loop });
    this.#reader = new Reader({ self, store, map, lease, link, clock, log, loop: this.#loop });
    this.#pipeline = { store, link, clock, log, patienceMs: parameters.memberMs };
    this.#answerCalls();
  }

  /** Begins with what the disk and the map say. The lease must have a session, and the map be read. */
  async start(): Promise<void> {
    await this.#loop.start();
    this.#beat();
  }

  stop(): void {
    this.#pulse?.cancel();
    this.#loop.stop();
  }

  #beat(): void {
    this.#pulse = this.clock.after(1_000, () => {
      this.#loop.checkSession();
      this.#loop.requests.expire(this.clock.now());
      this.#beat();
    });
  }

  // ---- what this node's own gateway asks ----

  /**
   * One linearizable write, exactly once per request id, at the primary of its group.
   *
   * @param options.revision  of the map by which this node was chosen; a newer one is read before it refuses
   * @throws NOT_PRIMARY, UNAVAILABLE, NO_QUORUM, BUSY, TOO_LATE, DISK_FULL, PRECONDITION_FAILED, CONFLICT, FENCED, INVALID, TOO_LARGE
   */
  async write(request: WriteRequest, options: { revision?: Revision; sums?: Uint32Array } = {}): Promise<WriteAnswer> {
    await this.#whenServing(request, options.revision ?? 0);
    const { sums } = options;
    const more = sums === undefined ? {} : { sums };
    return await this.#loop.propose(request, (ticket) => {
      return { type: 'write', ticket, request, nowMs: this.clock.now(), ...more };
    });
  }

  /** A committed record at its primary; undefined if there is none. @throws NOT_PRIMARY, UNAVAILABLE, NO_QUORUM, CORRUPT */
  async read(request: ReadRequest, revision: Revision = 0): Promise<ReadAnswer | undefined> {
    await this.#whenServing(request, revision);
    return await this.#reader.read(request);
  }

  /** A page over the groups of which this node is primary. */
  async list(request: NodeListRequest): Promise<NodeListAnswer> {
    const source = {
      store: this.store,
      groupCount: 2 ** this.map.view.map.groupBits,
      servingBallots: (policy: NodeListRequest['policy']) => this.#loop.servingBallots(policy),
      revision: () => this.map.view.revision,
    };
    return await listPage(source, request);
  }

  /** A group that is being taken over is waited for, and a map that its asker has seen further. */
  async #whenServing(group: GroupKey, revision: Revision): Promise<void> {
    if (this.#isServing(group)) return;
    const until = this.clock.monotonic() + this.parameters.waitMs;
    if (revision > this.map.view.revision) await this.map.readThrough(revision);
    for (;;) {
      if (this.#isServing(group) || !this.#isTakingOver(group)) return;
      const left = until - this.clock.monotonic();
      if (left <= 0) return;
      await this.#loop.waits.wait(group, left);
    }
  }

  #isServing(group: GroupKey): boolean {
    return this.#loop.state(group)?.primary?.phase === 'serve';
  }

  #isTakingOver(group: GroupKey): boolean {
    const primary = this.#loop.state(group)?.primary;
    if (primary !== undefined) return primary.phase !== 'serve' && primary.phase !== 'yielded';
    return this.#loop.isOpening(group) && this.map.view.group(group).primary === this.self;
  }

  // ---- what other nodes ask: the handlers of a transport ----

  handlePost(from: NodeId, message: Message): void {
    this.#posts.receive(from, message);
  }

  /** Adds an answer to a verb that is not the engine's own. */
  register(verb: number, handler: CallHandler): void {
    this.#calls.set(verb, handler);
  }

  async handleCall(verb: number, message: Message, context: CallContext): Promise<Message> {
    const handler = this.#calls.get(verb);
    if (handler === undefined) throw new WebdfsError('UNSUPPORTED', `no verb ${verb} at node ${this.self}`);
    return await handler(message, context);
  }

  #answerCalls(): void {
    this.register(VERB.WRITE, async (message) => {
      const { request, revision, sums } = decodeWriteRequest(message);
      return encodeWriteAnswer(await this.write(request, { revision, sums }));
    });
    this.register(VERB.READ, async (message) => {
      const { request, revision } = decodeReadRequest(message);
      return encodeReadAnswer(await this.read(request, revision));
    });
    this.register(VERB.LIST, async (message) => {
      const { request, revision } = decodeListRequest(message);
      if (revision > this.map.view.revision) await this.map.readThrough(revision);
      return encodeListAnswer(await this.list(request));
    });
    this.register(VERB.FETCH_ENTRIES, (message) => serveEntries(this.store, message));
  }

  /** A body that comes in: PUT_BLOCK at a primary, STAGE at those behind it. */
  async receive(verb: number, message: Message, body: Incoming, context: CallContext): Promise<Message> {
    if (verb === VERB.PUT_BLOCK) return await this.#putBlock(message, body, context);
    if (verb !== VERB.STAGE) throw new WebdfsError('UNSUPPORTED', `no verb ${verb} at node ${this.self}`);
    const stage = decodeStage(message);
    if (this.store.full) throw new WebdfsError('DISK_FULL', `the disk of node ${this.self} takes no more bytes`);
    await stageBody(stage, body, context, this.#pipeline);
    return STAGED_ANSWER;
  }

  /** A body that goes out: READ_BLOCK of what is committed, FETCH_STAGED of what is only staged too. */
  async serve(verb: number, message: Message, body: Outgoing, context: CallContext): Promise<Message> {
    if (verb !== VERB.READ_BLOCK && verb !== VERB.FETCH_STAGED) {
      throw new WebdfsError('UNSUPPORTED', `no verb ${verb} at node ${this.self}`);
    }
    const { request } = decodeReadBlock(message);
    try {
      return await serveBlock(this.store, request, body, {
        context,
        staged: verb === VERB.FETCH_STAGED,
        buffers: this.#buffers,
      });
    } catch (error) {
      if (error instanceof WebdfsError && error.code === 'CORRUPT') this.#reader.repairBlock(request, request.id);
      throw error;
    }
  }

  async #putBlock(message: Message, body: Incoming, context: CallContext): Promise<Message> {
    const { request, revision } = decodePutBlock(message);
    const group: GroupKey = { policy: request.policy, group: request.group };
    await this.#whenServing(group, revision);
    const primary = this.#checkTakes(group);
    const chain = this.map.view.group(group).inSync.filter((node) => node !== this.self);
    const stage = { ...group, ballot: primary, id: request.id.slice(), chain };
    const whole = await stageBody(stage, body, context, this.#pipeline);
    // a takeover meanwhile costs the sender its bytes only if another node is primary after it
    await this.#whenServing(group, 0);
    await this.#proposeBlock({ ...request, id: stage.id }, whole);
    return encodePutBlockAnswer(whole);
  }

  /** Refuses a block before its bytes come. */
  #checkTakes(group: GroupKey): Ballot {
    const state = this.#loop.state(group);
    if (state?.primary === undefined) {
      const details = { revision: this.map.view.revision };
      throw new WebdfsError('NOT_PRIMARY', `node ${this.self} does not serve this group`, { details });
    }
    const refusal = cannotServe(state, this.#loop.context);
    if (refusal !== undefined) throw refusal;
    if (this.store.full) throw new WebdfsError('DISK_FULL', 'the disk of the primary takes no more bytes');
    return state.primary.ballot;
  }

  async #proposeBlock(head: PutBlockHead, whole: { size: number; sums: Uint32Array }): Promise<void> {
    const { high: hashHigh, low: hashLow } = hashKey(head.id);
    const owner = packBlockOwner({ key: head.key, uploadId: head.uploadId });
    await this.#loop.propose(head, (ticket) => {
      return { type: 'block', ticket, id: head.id, hashHigh, hashLow, owner, ...whole, nowMs: this.clock.now() };
    });
  }

  /** A member that missed a block's stream gets the bytes from the primary, or whoever has them. */
  async obtain(entry: LogEntry): Promise<void> {
    const { primary, inSync } = this.map.view.group({ policy: entry.policy, group: entry.group });
    const others = inSync.filter((node) => node !== this.self && node !== primary);
    const nodes = primary === undefined || primary === this.self ? others : [primary, ...others];
    await fromAny(nodes, (node) => copyBlock(this.store, this.#link(node), entry));
  }

  // ---- what those beside the engine ask (replica-host.ts) ----

  get requests(): RequestTable {
    return this.#loop.requests;
  }

  link(node: NodeId): Link {
    return this.#link(node);
  }

  session(): Revision {
    return this.#lease.session;
  }

  fatal(error: unknown): void {
    this.#hooks.fatal?.(error);
  }

  /** Resolves when nothing of a group that this node left is on its way to the disk. */
  async quiet(group: GroupKey): Promise<void> {
    await this.#loop.quiet(group);
  }

  /** Posts to another node's engine, with what else leaves in this turn. */
  tell(node: NodeId, message: ProtocolMessage): void {
    this.#loop.outbox.send(node, message);
  }

  serving(group: GroupKey): Ballot {
    const state = this.#loop.state(group);
    if (state?.primary?.phase !== 'serve' || !this.#lease.holds()) return 0;
    return this.map.view.group(group).ballot === state.primary.ballot ? state.primary.ballot : 0;
  }

  *served(): Generator<GroupKey> {
    for (const { key, primary } of this.#loop.states()) if (primary?.phase === 'serve') yield key;
  }

  startLearner(group: GroupKey, node: NodeId, session: Revision): LogBase | undefined {
    const state = this.#loop.state(group);
    if (state?.primary === undefined || learnerOf(state) !== undefined) return undefined;
    this.#loop.step(state, { type: 'learner-start', node, session, at: this.#loop.now() });
    const learner = learnerOf(state);
    return learner === undefined ? undefined : { sequence: learner.base, ballot: state.commitBallot };
  }

  readyLearner(group: GroupKey, node: NodeId): void {
    this.#loop.offer(group, { type: 'learner-ready', node, at: this.#loop.now() });
  }

  failLearner(group: GroupKey, node: NodeId): void {
    this.#loop.offer(group, { type: 'learner-failed', node, at: this.#loop.now() });
  }

  arrange(group: GroupKey): void {
    this.#loop.offer(group, { type: 'arrange', at: this.#loop.now() });
  }

  async proposeNote(group: GroupKey, name: Uint8Array, value: Uint8Array): Promise<void> {
    await this.#loop.propose(group, (ticket) => ({ type: 'note', ticket, name, value, nowMs: this.clock.now() }));
  }

  async proposeBlockGone(group: GroupKey, id: Uint8Array): Promise<void> {
    await this.#loop.propose(group, (ticket) => ({ type: 'block-gone', ticket, id, nowMs: this.clock.now() }));
  }

  *requestsOf(group: GroupKey): Generator<KnownWrite & { readonly requestId: Uint8Array }> {
    const commit = this.#loop.state(group)?.commit ?? 0;
    // Those in flight travel with their entries: they may yet be cut.
    for (const known of this.#loop.requests.of(group)) if (known.sequence <= commit) yield known;
  }

  async follow(group: GroupKey, ballot: Ballot, options: { base: LogBase; asIs: boolean }): Promise<void> {
    await this.#loop.follow(group, ballot, options);
  }

  rememberRequests(group: GroupKey, requests: readonly (KnownWrite & { readonly requestId: Uint8Array })[]): void {
    for (const { requestId, ...write } of requests) this.#loop.requests.remember(group, requestId, write);
  }

  /** Groups by what this node is to them, and what is under way. */
  counts(): GroupCounts {
    return countGroups(this.#loop);
  }
}

function learnerOf(state: GroupState): LearnerSlot | undefined {
  return state.primary?.learner;
}
