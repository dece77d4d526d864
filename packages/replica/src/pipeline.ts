import {
  asNodeId,
  type Ballot,
  type Clock,
  type GroupKey,
  type Log,
  messageOf,
  type NodeId,
  Reader,
  sleep,
  WebdfsError,
  Writer,
} from '@webdfs/base';
import { BLOCK_ID_BYTES, type Staging, type Store } from '@webdfs/store';
import type { CallContext, Incoming, Link, Message, Outgoing, Piece } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { MAX_BLOCK_BYTES } from './block-codec.ts';
import { putGroup, REQUEST_FORMAT, takeFormat, takeGroup } from './request-codec.ts';
import { VERB } from './verbs.ts';

/** Nodes a block passes through at most: more copies than any policy has. */
const MAX_CHAIN = 16;
const DEADLINE_MS = 60_000;

/** The head of STAGE: whose block it is, and who gets it after the receiver. */
export interface StageHead extends GroupKey {
  readonly ballot: Ballot;
  readonly id: Uint8Array;
  readonly chain: readonly NodeId[];
}

/** `u8 format | u16 policy | u32 group | u53 ballot | id 20 | u8 count, u16 node each`. */
export function encodeStage(stage: StageHead): Message {
  const head = putGroup(new Writer(64).u8(REQUEST_FORMAT), stage).u53(stage.ballot).raw(stage.id);
  head.u8(stage.chain.length);
  for (const node of stage.chain) head.u16(node);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeStage(message: Message): StageHead {
  const reader = new Reader(message.head);
  takeFormat(reader);
  const { policy, group } = takeGroup(reader);
  const ballot = reader.u53();
  const id = reader.raw(BLOCK_ID_BYTES).slice();
  const count = reader.u8();
  if (count > MAX_CHAIN) throw new WebdfsError('TOO_LARGE', `chain of ${count} nodes, limit ${MAX_CHAIN}`);
  const chain: NodeId[] = [];
  for (let i = 0; i < count; i++) chain.push(asNodeId(reader.u16()));
  reader.end();
  return { policy, group, ballot, id, chain };
}

export interface PipelineOptions {
  readonly store: Pick<Store, 'stage'>;
  readonly link: (node: NodeId) => Link;
  readonly clock: Clock;
  readonly log: Log;
  /** So long the next node of the chain may hold up the bytes; then it goes on without it. */
  readonly patienceMs: number;
}

/**
 * W2: a block's bytes are staged here and passed on to the rest of the chain while they arrive. A node of the chain that
 * fails or stalls is left behind: it gets the bytes when the block's entry reaches it. Resolves once this node has them all
 * and those behind it have said the same, or were left behind.
 *
 * @throws what ended the body, DISK_FULL, TOO_LARGE
 */
export async function stageBody(
  stage: StageHead,
  body: Incoming,
  context: CallContext,
  options: PipelineOptions,
): Promise<{ size: number; sums: Uint32Array }> {
  const staging = options.store.stage({ policy: stage.policy, group: stage.group }, stage.id);
  const next = nextInChain(stage, context, options);
  try {
    await pump(body, staging, next, context);
    const whole = await staging.finish();
    await next?.end();
    return whole;
  } catch (error) {
    staging.abort();
    next?.leave('the block was given up');
    throw error;
  }
}

async function pump(body: Incoming, staging: Staging, next: Follower | undefined, context: CallContext): Promise<void> {
  let size = 0;
  for (;;) {
    const piece = body.take();
    if (piece === undefined) {
      if (body.ended) return;
      context.signal.throwIfAborted();
      await body.ready();
      continue;
    }
    size += piece.bytes.length;
    let written: Promise<void> | undefined;
    try {
      if (size > MAX_BLOCK_BYTES) throw new WebdfsError('TOO_LARGE', `block of more than ${MAX_BLOCK_BYTES} bytes`);
      next?.pass(piece);
      written = staging.write(piece.bytes);
    } finally {
      piece.release();
    }
    if (written !== undefined) await written;
    if (next?.isFull === true) await next.room();
  }
}

/** The next node of the chain, as long as it keeps up. */
class Follower {
  readonly #body: Outgoing;
  readonly #answer: Promise<boolean>;
  readonly #clock: Clock;
  readonly #patienceMs: number;
  isFull = false;
  #isLeft = false;

  constructor(sent: { body: Outgoing; answer: Promise<Message> }, node: NodeId, options: PipelineOptions) {
    this.#body = sent.body;
    this.#clock = options.clock;
    this.#patienceMs = options.patienceMs;
    this.#answer = sent.answer.then(
      () => true,
      (error: unknown) => {
        options.log.debug('a block goes on without a member', { node, why: messageOf(error) });
        this.#isLeft = true;
        return false;
      },
    );
  }

  pass(piece: Piece): void {
    if (this.#isLeft) return;
    piece.hold();
    try {
      this.isFull = !this.#body.write(piece);
    } catch (error) {
      piece.release();
      this.leave(messageOf(error));
    }
  }

  /** Waits for room, as long as patience lasts. */
  async room(): Promise<void> {
    if (!this.#isLeft) await this.#within(this.#body.ready().then(() => true));
    this.isFull = false;
  }

  async end(): Promise<void> {
    if (this.#isLeft) return;
    this.#body.end();
    await this.#within(this.#answer);
  }

  leave(why: string): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#body.cancel(why);
  }

  async #within(step: Promise<boolean>): Promise<void> {
    const over = new AbortController();
    const patience = sleep(this.#clock, this.#patienceMs, over.signal).then(
      () => false,
      () => true,
    );
    const isIn = await Promise.race([step.catch(() => false), patience]);
    over.abort();
    if (!isIn) this.leave('it does not keep up');
  }
}

function nextInChain(stage: StageHead, context: CallContext, options: PipelineOptions): Follower | undefined {
  const [node, ...chain] = stage.chain;
  if (node === undefined) return undefined;
  const deadlineMs = Math.min(context.deadlineMs, DEADLINE_MS);
  const message = encodeStage({ ...stage, chain });
  return new Follower(
    options.link(node).send(VERB.STAGE, message, { deadlineMs, signal: context.signal }),
    node,
    options,
  );
}

export const STAGED_ANSWER: Message = { head: Uint8Array.of(REQUEST_FORMAT), attached: NO_ATTACHMENT };
