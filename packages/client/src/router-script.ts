import assert from 'node:assert/strict';
import {
  asGroupId,
  asNodeId,
  asPolicyId,
  EMPTY,
  type ErrorCode,
  ManualClock,
  type NodeId,
  SeededRandom,
  silentLog,
  type Timer,
  utf8,
  WebdfsError,
} from '@webdfs/base';
import type { GroupView, LocalMap, MapView } from '@webdfs/cluster';
import { encodeWriteAnswer, type WriteRequest } from '@webdfs/replica';
import type { Link, Message } from '@webdfs/wire';
import type { RouterLimits } from './router-seams.ts';
import { GroupRouter } from './router.ts';

export const POLICY = asPolicyId(1);
export const [ONE, TWO, THREE] = [asNodeId(1), asNodeId(2), asNodeId(3)];
export const GROUP_BITS = 3;

/** A clock that moves by a millisecond a turn of the event loop as long as anything waits for it. */
export class IdleClock extends ManualClock {
  #waiting = 0;
  #moving = false;

  override after(ms: number, action: () => void): Timer {
    let live = true;
    const settle = (): void => {
      if (live) this.#waiting--;
      live = false;
    };
    const timer = super.after(ms, () => {
      settle();
      action();
    });
    this.#waiting++;
    if (!this.#moving) setImmediate(() => this.#move());
    this.#moving = true;
    return {
      cancel: () => {
        settle();
        timer.cancel();
      },
    };
  }

  #move(): void {
    this.#moving = this.#waiting > 0;
    if (!this.#moving) return;
    this.advance(1);
    setImmediate(() => this.#move());
  }
}

export type Handler = (message: Message, verb: number) => Message | Promise<Message>;

export function makeMap(script: Script): LocalMap {
  return {
    get view(): MapView {
      const { revision, primaryOf, inSync } = script;
      const group = (key: { group: number }): Partial<GroupView> => ({
        primary: primaryOf(key.group),
        inSync,
        health: 'whole',
      });
      return { revision, map: { groupBits: GROUP_BITS }, group } as unknown as MapView;
    },
    async readThrough(revision) {
      script.readThroughs.push(revision);
      while (script.revision < revision) script.move();
      return this.view;
    },
    onChange(listener) {
      const heard = (view: MapView): void => listener(view, 'all');
      script.listeners.add(heard);
      return () => script.listeners.delete(heard);
    },
    transact: () => Promise.reject(new Error('a router writes no map')),
  };
}

/** A cluster of scripted nodes: a map whose groups all have one primary, and what each node does when it is called. */
export class Script {
  readonly clock = new IdleClock();
  readonly handlers = new Map<NodeId, Handler>();
  readonly bodies = new Map<NodeId, Partial<Link>>();
  readonly listeners = new Set<(view: MapView) => void>();
  readonly calls: { node: NodeId; message: Message }[] = [];
  readThroughs: number[] = [];
  revision = 1;
  primaryOf: (group: number) => NodeId | undefined = () => ONE;
  inSync: readonly NodeId[] = [ONE, TWO, THREE];

  router(limits: Partial<RouterLimits> = {}, self?: NodeId): GroupRouter {
    const { clock, map } = this;
    const seams = { map, link: (node: NodeId) => this.#link(node), clock, random: new SeededRandom(1), log: silentLog };
    return new GroupRouter(self === undefined ? seams : { ...seams, self }, limits);
  }

  /** The map at the next revision. */
  move(primaryOf: (group: number) => NodeId | undefined = this.primaryOf): void {
    this.revision++;
    this.primaryOf = primaryOf;
    for (const listener of this.listeners) listener(this.map.view);
  }

  /** Always the newest view, as of now. */
  readonly map: LocalMap = makeMap(this);

  #link(node: NodeId): Link {
    return {
      peer: node,
      call: async (verb, message) => {
        this.calls.push({ node, message });
        const handler = this.handlers.get(node);
        if (handler === undefined) throw new WebdfsError('PEER_LOST', `node ${node} is down`);
        return await handler(message, verb);
      },
      post: () => false,
      send: () => assert.fail('no send was scripted'),
      fetch: () => assert.fail('no fetch was scripted'),
      ...this.bodies.get(node),
    };
  }
}

export function aWrite(): WriteRequest {
  return {
    policy: POLICY,
    group: asGroupId(2),
    requestId: new Uint8Array(16).fill(5),
    ageMs: 100,
    kind: 'put',
    key: utf8('0000key'),
    hashHigh: 1,
    hashLow: 2,
    conditions: {},
    requires: [],
    summary: new Uint8Array(32),
    owner: EMPTY,
    body: utf8('body'),
  };
}

export const WRITTEN = { sequence: 3, ballot: 9, modifiedMs: 77, replaced: undefined };
export const written: Handler = () => encodeWriteAnswer(WRITTEN);
export const refusing =
  (code: ErrorCode, details: Record<string, number> = {}): Handler =>
  () => {
    throw new WebdfsError(code, 'scripted', { details });
  };
