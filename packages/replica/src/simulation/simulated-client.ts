import { assert, type NodeId, SeededRandom, type Sequence, utf8, WebdfsError } from '@webdfs/base';
import { packSummary } from '../record.ts';
import type { WriteRequest } from '../requests.ts';
import { GROUP } from './rules.ts';

/** One thing a client wants, over all its tries. */
export interface Operation {
  readonly kind: 'put' | 'create' | 'delete' | 'read';
  readonly name: string;
  readonly request: WriteRequest;
  readonly begunAt: number;
  /** The newest version of the key that anybody had been told of when it began (S4). */
  readonly floor: Sequence;
  tries: number;
  askedAt: number;
  ticket: number;
}

const KEYS = ['a', 'b', 'c'];

export const simulatedKey = (name: string): Uint8Array => utf8(`0000${name}`);
export const SIMULATED_KEYS: readonly Uint8Array[] = KEYS.map(simulatedKey);

const RETRY_FOR_MS = 10_000;
const ANSWER_WITHIN_MS = 3_000;

/** A client with one operation at a time, which it tries again until it is answered or too old. */
export class SimulatedClient {
  readonly #random: SeededRandom;
  readonly id: number;
  operation: Operation | undefined;
  #count = 0;

  constructor(id: number, seed: number) {
    this.id = id;
    this.#random = new SeededRandom(seed);
  }

  begin(at: number, floorOf: (name: string) => Sequence): Operation {
    assert(this.operation === undefined, 'a client does one thing at a time');
    const name = KEYS[this.#random.below(KEYS.length)]!;
    const dice = this.#random.below(10);
    const kind = dice < 4 ? 'put' : dice < 5 ? 'create' : dice < 6 ? 'delete' : 'read';
    const requestId = new Uint8Array(16);
    new DataView(requestId.buffer).setUint32(0, this.id + 1);
    new DataView(requestId.buffer).setUint32(4, ++this.#count);
    const etag = requestId.slice();
    const request: WriteRequest = {
      ...GROUP,
      requestId,
      ageMs: 0,
      kind: kind === 'delete' ? 'delete' : 'put',
      key: simulatedKey(name),
      hashHigh: 0,
      hashLow: 0,
      conditions: kind === 'create' ? { ifNoneMatch: ['*'] } : {},
      requires: [],
      summary: kind === 'delete' ? new Uint8Array(0) : packSummary({ size: 0, etag, parts: 0, flags: 0 }),
      owner: new Uint8Array(0),
      body: new Uint8Array(0),
    };
    this.operation = { kind, name, request, begunAt: at, floor: floorOf(name), tries: 0, askedAt: 0, ticket: 0 };
    return this.operation;
  }

  /** Whether it is time to ask (again). */
  wants(at: number): boolean {
    const { operation } = this;
    if (operation === undefined) return false;
    return operation.ticket === 0 || at >= operation.askedAt + ANSWER_WITHIN_MS;
  }

  asks(at: number, ticket: number): WriteRequest {
    const operation = this.operation!;
    operation.tries++;
    operation.askedAt = at;
    operation.ticket = ticket;
    return { ...operation.request, ageMs: at - operation.begunAt };
  }

  /** An answer that is to be tried again, or the end of patience. */
  refused(error: WebdfsError, at: number): void {
    const operation = this.operation!;
    operation.ticket = 0;
    if (error.remedy === 'caller' || at > operation.begunAt + RETRY_FOR_MS) this.operation = undefined;
  }

  /** Which node to ask: mostly the one it believes to be primary. */
  choose(primary: NodeId | undefined, nodes: readonly NodeId[]): NodeId {
    if (primary !== undefined && this.#random.below(8) > 0) return primary;
    return nodes[this.#random.below(nodes.length)]!;
  }
}
