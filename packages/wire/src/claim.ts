import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { asNodeId, fromUtf8, type NodeId, type SeededRandom, utf8, WebdfsError } from '@webdfs/base';
import type { Limits } from './limits.ts';
import type { Handlers, Incoming, Link, Message, Outgoing, Piece, Transport } from './transport.ts';

/** A network under test: nodes on it find each other by themselves. */
export interface TestNetwork extends AsyncDisposable {
  /** A node begins, again if it was disposed before. */
  open(node: NodeId, handlers: Handlers): Promise<Transport>;
  /** Tells every node where the others are. */
  meet(): void;
  /** Lets a little time pass, real or simulated. */
  step(): Promise<void>;
  /** Ends all connections between two nodes; they may connect again. */
  drop(a: NodeId, b: NodeId): void;
  /** Nothing passes between two nodes, and neither is told. */
  partition(a: NodeId, b: NodeId): void;
  heal(a: NodeId, b: NodeId): void;
  /** Pieces of bodies lent to anybody on this network and not released. */
  lent(): number;
}

/** Limits that the suite asks for, so that it need not wait long nor move much. */
export const TEST_LIMITS: Partial<Limits> = { pingAfterMs: 200, silenceMs: 1000, firstRetryMs: 5, lastRetryMs: 50 };

export const ONE = asNodeId(1);
export const TWO = asNodeId(2);
export const THREE = asNodeId(3);
const MANY_STEPS = 20_000;

export const message = (text: string, ...attached: Uint8Array[]): Message => ({ head: utf8(text), attached });
export const textOf = (message: Message): string => fromUtf8(message.head);

function never(): never {
  throw new WebdfsError('UNSUPPORTED', 'not expected in this test');
}

export const NO_HANDLERS: Handlers = { call: never, post: never, receive: never, serve: never };

export function pieceOf(bytes: Uint8Array, released: () => void = () => undefined): Piece {
  let references = 1;
  return {
    bytes,
    hold: () => void references++,
    release: () => {
      assert.ok(references > 0, 'a piece is released as often as it was held');
      if (--references === 0) released();
    },
  };
}

/** Writes all and ends; the pieces are cut by `random`. */
export async function writeAll(body: Outgoing, bytes: Uint8Array, random: SeededRandom, most = 200_000): Promise<void> {
  let at = 0;
  while (at < bytes.length) {
    const count = Math.min(bytes.length - at, 1 + random.below(most));
    if (!body.write(pieceOf(bytes.subarray(at, at + count)))) await body.ready();
    at += count;
  }
  body.end();
}

/** Reads all, copying, as bytes are lent. */
export async function readAll(body: Incoming): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (;;) {
    const piece = body.take();
    if (piece !== undefined) {
      parts.push(piece.bytes.slice());
      piece.release();
    } else if (body.ended) return new Uint8Array(Buffer.concat(parts));
    else await body.ready();
  }
}

/** A promise to settle from outside. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open!: (value: T) => void;
  const promise = new Promise<T>((resolve) => (open = resolve));
  return { promise, open };
}

export function rejectsWith(code: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof WebdfsError, String(error));
    assert.equal(error.code, code);
    return true;
  };
}

export class Pair implements AsyncDisposable {
  readonly network: TestNetwork;
  readonly one: Transport;
  readonly two: Transport;

  constructor(network: TestNetwork, one: Transport, two: Transport) {
    this.network = network;
    this.one = one;
    this.two = two;
  }

  async until(condition: () => boolean): Promise<void> {
    for (let step = 0; step < MANY_STEPS; step++) {
      if (condition()) return;
      await this.network.step();
    }
    assert.fail('what was waited for did not come');
  }

  /** Lets time pass until the promise has settled. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = (): void => void (settled = true);
    promise.then(done, done);
    await this.until(() => settled);
    return await promise;
  }

  async met(): Promise<void> {
    await this.until(() => this.one.alive(TWO) && this.two.alive(ONE));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.network[Symbol.asyncDispose]();
    assert.equal(this.network.lent(), 0, 'every lent piece was released');
  }
}

/** Nodes one and two that have met, both with the handlers. */
export type OpenPair = (context: TestContext, handlers: Partial<Handlers>, limits?: Partial<Limits>) => Promise<Pair>;
export type OpenNetwork = (context: TestContext, limits: Partial<Limits>) => Promise<TestNetwork>;

/** Something every link promises, whichever way it leads. */
export interface LinkClaim {
  readonly name: string;
  readonly check: (context: TestContext, pair: OpenPair, linkOf: (pair: Pair) => Link) => Promise<void>;
}

/** Something a network of nodes promises. */
export interface NetworkClaim {
  readonly name: string;
  readonly check: (context: TestContext, pair: OpenPair, openNetwork: OpenNetwork) => Promise<void>;
}
