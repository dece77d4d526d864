import type { GroupKey, PolicyId, Revision } from '@webdfs/base';
import { groupOf } from '@webdfs/placement';
import {
  decodeReadAnswer,
  decodeWriteAnswer,
  encodeReadRequest,
  encodeWriteRequest,
  type ListPage,
  type ListRequest,
  type ReadAnswer,
  type ReadRequest,
  VERB,
  type WriteAnswer,
  type WriteRequest,
} from '@webdfs/replica';
import type { Message, Piece } from '@webdfs/wire';
import type { BlockHeader, BlockUpload, Groups } from './groups.ts';
import { Retry } from './retry.ts';
import { routedBlock } from './router-block-read.ts';
import { RoutedBlockUpload } from './router-block-upload.ts';
import { routedList } from './router-list.ts';
import { primaryLink, ROUTER_LIMITS, type RouterLimits, type RouterSeams } from './router-seams.ts';

/**
 * Replicated groups as seen by whoever holds the map: computes a key's group, asks that group's primary, and follows the
 * group wherever it goes. Protocol W1, R1–R3; retries keep their request id, so that a write happens once.
 *
 * Nothing but the map is kept between calls. What does not pass by itself is thrown as it came; what does is tried again
 * for `retryForMs`, then UNAVAILABLE.
 */
export class GroupRouter implements Groups {
  readonly #seams: RouterSeams;
  readonly #limits: RouterLimits;

  constructor(seams: RouterSeams, limits: Partial<RouterLimits> = {}) {
    this.#seams = seams;
    this.#limits = { ...ROUTER_LIMITS, ...limits };
  }

  groupOf(policy: PolicyId, hashHigh: number): GroupKey {
    return { policy, group: groupOf(hashHigh, this.#seams.map.view.map.groupBits) };
  }

  write(request: WriteRequest): Promise<WriteAnswer> {
    return this.#ask(
      VERB.WRITE,
      request,
      (revision, ageMs) => encodeWriteRequest({ ...request, ageMs: request.ageMs + ageMs }, revision),
      decodeWriteAnswer,
    );
  }

  read(request: ReadRequest): Promise<ReadAnswer | undefined> {
    return this.#ask(VERB.READ, request, (revision) => encodeReadRequest(request, revision), decodeReadAnswer);
  }

  list(request: ListRequest): Promise<ListPage> {
    return routedList(this.#seams, this.#limits, request);
  }

  putBlock(policy: PolicyId, id: Uint8Array, header: BlockHeader, signal?: AbortSignal): BlockUpload {
    return new RoutedBlockUpload(this.#seams, this.#limits, { policy, id, header, ...(signal && { signal }) });
  }

  readBlock(
    policy: PolicyId,
    id: Uint8Array,
    range: { offset: number; length: number; signal?: AbortSignal },
  ): AsyncIterable<Piece> {
    return routedBlock(this.#seams, this.#limits, { policy, id, ...range });
  }

  /** Asks the primary of a group until it answers. */
  async #ask<Answer>(
    verb: number,
    group: GroupKey,
    encode: (revision: Revision, ageMs: number) => Message,
    decode: (message: Message) => Answer,
  ): Promise<Answer> {
    const retry = new Retry(this.#seams, this.#limits);
    for (;;) {
      const revision = retry.begin();
      try {
        const message = encode(revision, retry.age.ms);
        const answer = await primaryLink(this.#seams, group).call(verb, message, { deadlineMs: retry.attemptMs });
        return decode(answer);
      } catch (error) {
        await retry.failed(error);
      }
    }
  }
}
