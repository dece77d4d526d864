import { asGroupId, asNodeId, asPolicyId, chunkSums, EMPTY, type NodeId, utf8 } from '@webdfs/base';
import type { GroupView, Proposal as MembershipProposal } from '@webdfs/cluster';
import { FLAG, KIND, type LogEntry, type RecordRow } from '@webdfs/store';
import type { Effect, GroupEvent, Outcome, StepContext } from './events.ts';
import { makeGroup } from './group-log.ts';
import type { ProtocolMessage } from './messages.ts';
import { REPLICA_DEFAULTS } from './parameters.ts';
import { packOwner, packSummary } from './record.ts';
import { RequestTable } from './request-table.ts';
import type { WriteRequest } from './requests.ts';
import type { GroupState } from './state.ts';
import { stepGroup } from './step.ts';

export const KEY = { policy: asPolicyId(1), group: asGroupId(0) };
export const [ONE, TWO, THREE, FOUR] = [1, 2, 3, 4].map(asNodeId) as [NodeId, NodeId, NodeId, NodeId];
export const NOW = 1_800_000_000_000;

export function aView(more: Partial<GroupView> = {}): GroupView {
  const inSync = more.inSync ?? [ONE, TWO, THREE];
  return {
    ballot: 10,
    inSync,
    members: inSync,
    primary: ONE,
    session: 5,
    configRevision: 10,
    overridden: false,
    eligible: [],
    fence: [],
    goal: inSync,
    copies: 3,
    minCopies: 2,
    health: 'whole',
    ...more,
  };
}

export function anEntry(sequence: number, ballot: number, name = 'a'): LogEntry {
  const meta = new Uint8Array(48);
  meta.fill(sequence, 0, 16);
  const rest = { flags: FLAG.LATEST_ONLY, commit: 0, timeMs: NOW, timeCount: sequence, hashHigh: 0, hashLow: 0 };
  return {
    ...KEY,
    kind: KIND.RECORD,
    sequence,
    ballot,
    key: utf8(name),
    meta,
    body: EMPTY,
    sums: chunkSums(EMPTY),
    ...rest,
  };
}

/** One group at one node: events in, effects out, a disk that is as fast as it is told to be. */
export class Bench {
  readonly rows = new Map<string, RecordRow>();
  readonly notes = new Map<string, Uint8Array>();
  readonly requests = new RequestTable({ entries: 1_024, keepMs: 120_000 });
  readonly state: GroupState;
  readonly context: StepContext;
  holds = true;
  yields = false;
  full = false;
  readonly suspect: boolean;
  at = 1_000;
  effects: Effect[] = [];
  #ticket = 0;

  constructor(
    options: {
      self?: NodeId;
      view?: GroupView;
      tail?: readonly LogEntry[];
      commit?: number;
      marked?: boolean;
      suspect?: boolean;
    } = {},
  ) {
    const { self = ONE, view = aView(), tail = [], commit = 0, suspect = false } = options;
    this.suspect = suspect;
    const plan = (_: unknown, change: { type: string }): MembershipProposal | undefined =>
      ({
        group: KEY,
        override: { members: change.type === 'drop' ? [ONE, TWO] : [ONE, TWO, THREE, FOUR], eligible: [], from: [] },
        transaction: { compare: [], write: [] },
        yields: this.yields,
      }) as MembershipProposal;
    this.context = {
      self,
      parameters: REPLICA_DEFAULTS,
      session: () => 5,
      revision: () => 10,
      leaseHolds: () => this.holds,
      patienceMs: () => REPLICA_DEFAULTS.memberMs,
      find: (key) => this.rows.get(Buffer.from(key).toString('latin1')),
      note: (_, name) => this.notes.get(Buffer.from(name).toString('hex')),
      plan,
      full: () => this.full,
      suspect: () => this.suspect,
      flight: { bytes: 0 },
      requests: this.requests,
    };
    const mark = options.marked === false ? undefined : ({ role: 'member', syncedIn: 0 } as const);
    const log = { last: commit + tail.length, lastBallot: 1, commit, objects: 0, blocks: 0, bytes: 0, digest: 0, mark };
    this.state = makeGroup({ key: KEY, view, log, pending: tail, context: this.context });
    this.feed({ type: 'view', view, at: this.at });
  }

  /** @returns the effects of this event alone */
  feed(event: GroupEvent): Effect[] {
    const effects: Effect[] = [];
    stepGroup(this.state, event, this.context, effects);
    this.effects.push(...effects);
    for (const effect of effects) {
      if (effect.type === 'apply') this.#apply(effect.upTo);
      if (effect.type === 'revive')
        effects.push(...this.feed({ type: 'proposal', proposal: effect.proposal, at: this.at }));
    }
    return effects;
  }

  #apply(upTo: number): void {
    for (const effect of this.effects) {
      if (effect.type !== 'append' || effect.entry.sequence > upTo) continue;
      const { key, sequence, meta, timeMs: modifiedMs, flags, kind } = effect.entry;
      const name = Buffer.from(key).toString('latin1');
      const place = { volume: 0, place: 0, entryBytes: 0 };
      if (kind === KIND.RECORD)
        this.rows.set(name, { ...KEY, key, sequence, flags, modifiedMs, summary: meta.subarray(16, 48), ...place });
      if (kind === KIND.TOMBSTONE) this.rows.delete(name);
    }
  }

  hear(from: NodeId, message: ProtocolMessage, session = from * 100): Effect[] {
    return this.feed({ type: 'message', from, session, message, at: this.at });
  }

  durable(upTo: number): Effect[] {
    return this.feed({ type: 'durable', upTo, at: this.at });
  }

  tick(ms: number): Effect[] {
    this.at += ms;
    return this.feed({ type: 'tick', at: this.at });
  }

  /** Everybody says that their logs end where this one does. */
  takeOver(others: readonly NodeId[] = [TWO, THREE]): this {
    const { last, lastBallot, commit } = this.state;
    for (const node of others) {
      const { round } = this.state.primary!.members.get(node)!;
      this.hear(node, { type: 'tail', ...this.to, round, commit, last, lastBallot, runs: [] });
    }
    for (const node of others) this.ack(node, last);
    return this;
  }

  get to(): { policy: typeof KEY.policy; group: typeof KEY.group; ballot: number } {
    return { ...KEY, ballot: this.state.view.ballot };
  }

  ack(node: NodeId, last: number, expects?: number): Effect[] {
    return this.hear(
      node,
      expects === undefined ? { type: 'ack', ...this.to, last } : { type: 'ack', ...this.to, last, expects },
    );
  }

  write(more: Partial<WriteRequest> = {}): { ticket: number; effects: Effect[] } {
    const ticket = ++this.#ticket;
    const requestId = new Uint8Array(16).fill(100);
    new DataView(requestId.buffer).setUint32(0, ticket);
    const etag = new Uint8Array(16).fill(ticket);
    const request: WriteRequest = {
      ...KEY,
      requestId,
      ageMs: 0,
      kind: 'put',
      key: utf8('a'),
      hashHigh: 0,
      hashLow: 0,
      conditions: {},
      requires: [],
      summary: packSummary({ size: 1, etag, parts: 0, flags: 0 }),
      owner: packOwner({ type: 'inline' }, '{}').owner,
      body: EMPTY,
      ...more,
    };
    const effects = this.feed({
      type: 'proposal',
      proposal: { type: 'write', ticket, request, nowMs: NOW },
      at: this.at,
    });
    return { ticket, effects };
  }

  outcome(ticket: number): Outcome | undefined {
    return this.effects.flatMap((effect) =>
      effect.type === 'answer' && effect.ticket === ticket ? [effect.outcome] : [],
    )[0];
  }

  /** `done`, or the code of the refusal, or `waiting`. */
  result(ticket: number): string {
    const outcome = this.outcome(ticket);
    if (outcome === undefined) return 'waiting';
    return outcome.type === 'done' ? 'done' : outcome.error.code;
  }

  /** All members have what this log has. */
  settle(): void {
    this.durable(this.state.last);
    for (const node of this.state.primary!.members.keys()) this.ack(node, this.state.last);
  }
}

export const sentTo = (effects: readonly Effect[], node: NodeId): ProtocolMessage[] =>
  effects.flatMap((effect) => (effect.type === 'send' && effect.to === node ? [effect.message] : []));

export const appendsTo = (effects: readonly Effect[], node: NodeId): number[] =>
  sentTo(effects, node).flatMap((message) => (message.type === 'append' ? [message.entry.sequence] : []));
