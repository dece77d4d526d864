import { codeOf, messageOf, type NodeId, type PolicyId, WebdfsError } from '@webdfs/base';
import { encodeReadBlock, MAX_BLOCK_BYTES, VERB } from '@webdfs/replica';
import type { Incoming, Piece } from '@webdfs/wire';
import { passes, Retry } from './retry.ts';
import { blockGroup } from './router-block-upload.ts';
import type { RouterLimits, RouterSeams } from './router-seams.ts';

interface BlockRange {
  readonly policy: PolicyId;
  readonly id: Uint8Array;
  readonly offset: number;
  readonly length: number;
  readonly signal?: AbortSignal;
}

/** A stretch of a block under way: pieces as they come, and what went wrong once they stop too early. */
interface Progress {
  delivered: number;
  failure: unknown;
}

/**
 * Bytes of a block from whoever has them (protocol R2): this node if it is a member, else the members in order. A source
 * that fails, lacks the block or finds it damaged is followed by the next, which goes on at the byte after the last one.
 * Once none is left the map is looked at again, for `retryForMs` from the last byte that came.
 *
 * @throws NOT_FOUND if every in-sync member says so; CORRUPT if none has it undamaged; UNAVAILABLE, CANCELLED
 */
export async function* routedBlock(
  seams: RouterSeams,
  limits: RouterLimits,
  range: BlockRange,
): AsyncGenerator<Piece, void, void> {
  if (range.offset < 0 || range.length < 0 || range.offset + range.length > MAX_BLOCK_BYTES) {
    throw new WebdfsError('INVALID', `bytes ${range.offset} + ${range.length} of a block`);
  }
  const group = blockGroup(seams, range.policy, range.id);
  const progress: Progress = { delivered: 0, failure: undefined };
  let retry = new Retry(seams, limits, range.signal);
  while (progress.delivered < range.length) {
    retry.begin();
    const before = progress.delivered;
    const failures: unknown[] = [];
    for (const node of sources(seams, seams.map.view.group(group).inSync)) {
      progress.failure = undefined;
      yield* stretch(seams, limits, { node, range, progress, group });
      if (progress.delivered === range.length) return;
      failures.push(progress.failure);
    }
    if (progress.delivered > before) retry = new Retry(seams, limits, range.signal);
    else await retry.failed(verdict(failures, range));
  }
}

/** This node first, where it is one of them. */
function sources(seams: RouterSeams, inSync: readonly NodeId[]): readonly NodeId[] {
  const { self } = seams;
  if (self === undefined || !inSync.includes(self)) return inSync;
  return [self, ...inSync.filter((node) => node !== self)];
}

/** What to make of members that all failed: something that passes outweighs damage, and damage outweighs absence. */
function verdict(failures: readonly unknown[], { id }: BlockRange): unknown {
  const passing = failures.find((failure) => passes(failure));
  if (passing !== undefined) return passing;
  const name = Buffer.from(id).toString('hex');
  if (failures.length === 0) return new WebdfsError('NOT_PRIMARY', `block ${name} has no member in sync now`);
  const telling = failures.find((failure) => codeOf(failure) !== 'NOT_FOUND') ?? failures[0];
  return new WebdfsError(codeOf(telling) ?? 'UNAVAILABLE', `block ${name}: ${messageOf(telling)}`, { cause: telling });
}

interface StretchOptions {
  readonly node: NodeId;
  readonly range: BlockRange;
  readonly progress: Progress;
  readonly group: Parameters<RouterSeams['map']['view']['group']>[0];
}

/** As much as one node gives. What it throws is only what ends the whole read. */
async function* stretch(
  seams: RouterSeams,
  limits: RouterLimits,
  { node, range, progress, group }: StretchOptions,
): AsyncGenerator<Piece, void, void> {
  const offset = range.offset + progress.delivered;
  const length = range.length - progress.delivered;
  const head = encodeReadBlock({ ...group, id: range.id, offset, length }, seams.map.view.revision);
  let body: Incoming | undefined;
  try {
    const options = { deadlineMs: limits.blockMs, ...(range.signal && { signal: range.signal }) };
    const fetched = seams.link(node).fetch(VERB.READ_BLOCK, head, options);
    body = fetched.body;
    // its failure is the body's too; kept so that it is never unhandled
    const answer = fetched.answer.then(
      () => undefined,
      (error: unknown) => error,
    );
    let left = length;
    while (left > 0) {
      const piece = body.take();
      if (piece !== undefined) {
        left -= piece.bytes.length;
        if (left < 0) {
          piece.release();
          throw new WebdfsError('CORRUPT', `node ${node} sent more than was asked of a block`);
        }
        progress.delivered += piece.bytes.length;
        yield piece;
      } else if (body.ended) {
        throw (await answer) ?? new WebdfsError('CORRUPT', `node ${node} sent ${length - left} of ${length} bytes`);
      } else await body.ready();
    }
    progress.failure = await answer;
  } catch (error) {
    if (range.signal?.aborted) throw new WebdfsError('CANCELLED', 'the reader gave up', { cause: error });
    seams.log.debug('block read failed over', { node, code: codeOf(error), why: messageOf(error) });
    progress.failure = error;
  } finally {
    // also where the reader left early: the sender must not wait for its window
    body?.cancel('no longer wanted');
  }
}
