import { equalBytes, type GroupKey, WebdfsError } from '@webdfs/base';
import type { MapView } from '@webdfs/cluster';
import type { LogEntry } from '@webdfs/store';
import type { CallContext, Link, Message, Outgoing } from '@webdfs/wire';
import { decodeReadBlock, encodeReadBlock, type ReadBlockHead } from './block-codec.ts';
import { packBlockBody, unpackBlockBody } from './block-entry.ts';
import { drain, serveBlock } from './block-transfer.ts';
import type { Hurry, MoveLane } from './move-pace.ts';
import type { ReplicaHost } from './replica-host.ts';
import { VERB } from './verbs.ts';

/** For one piece, which waits for its turn where the source may send only so much. */
const DEADLINE_MS = 60_000;

/** How much hurry there is with a group's next copy. */
export function hurryOf(view: MapView, key: GroupKey): Hurry {
  const { inSync, copies, minCopies } = view.group(key);
  if (inSync.length < minCopies) return 'urgent';
  return inSync.length < copies ? 'repair' : 'move';
}

export interface MoveBlockOptions {
  readonly host: Pick<ReplicaHost, 'store' | 'map' | 'moves'>;
  readonly link: Link;
  readonly lane: MoveLane;
  /** Told of bytes that came in vain. */
  readonly wasted: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Stages a block from a node that has it committed, a piece at a time and at the pace of moving; its sums are those of its entry.
 *
 * @throws CHECKSUM_MISMATCH if that node has others, or the link's errors
 */
export async function moveBlock(entry: LogEntry, options: MoveBlockOptions): Promise<void> {
  const { store, map, moves } = options.host;
  const group: GroupKey = { policy: entry.policy, group: entry.group };
  const { size } = unpackBlockBody(entry.body);
  const staging = store.stage(group, entry.key);
  let offset = 0;
  try {
    // what the device takes at once is on its account when it is next waited for
    let unwaited = 0;
    const write = (bytes: Uint8Array): Promise<void> | undefined => {
      moves.received(bytes.length);
      unwaited += bytes.length;
      const written = staging.write(bytes);
      if (written === undefined) return undefined;
      const waited = unwaited;
      unwaited = 0;
      return moves.write(waited, () => written);
    };
    while (offset < size) {
      const length = Math.min(options.lane.pieceBytes, size - offset);
      await options.lane.pass(length, hurryOf(map.view, group), options.signal);
      await movePiece({ ...group, id: entry.key, offset, length }, write, options);
      offset += length;
    }
    const whole = await moves.write(unwaited, () => staging.finish());
    if (equalBytes(packBlockBody(whole.size, whole.sums), entry.body)) return;
    throw new WebdfsError('CHECKSUM_MISMATCH', `node ${options.link.peer} sent a block that is another`);
  } catch (error) {
    staging.abort();
    options.wasted(offset);
    throw error;
  }
}

async function movePiece(
  piece: ReadBlockHead,
  write: (bytes: Uint8Array) => Promise<void> | undefined,
  { link, signal }: MoveBlockOptions,
): Promise<void> {
  const { body, answer } = link.fetch(VERB.MOVE_BLOCK, encodeReadBlock(piece, 0), { deadlineMs: DEADLINE_MS, signal });
  answer.catch(() => undefined);
  try {
    await drain(body, piece.length, write);
    await answer;
  } catch (error) {
    body.cancel('given up');
    throw error;
  }
}

/** MOVE_BLOCK at the node that is read from: as READ_BLOCK, at the pace of moving. @throws INVALID, and as `serveBlock` */
export async function serveMovedBlock(
  { store, map, moves }: Pick<ReplicaHost, 'store' | 'map' | 'moves'>,
  lane: MoveLane,
  [message, body, context]: readonly [Message, Outgoing, CallContext],
): Promise<Message> {
  const { request } = decodeReadBlock(message);
  if (request.length === 0) throw new WebdfsError('INVALID', 'a piece of a block has a length');
  await lane.pass(request.length, hurryOf(map.view, request), context.signal);
  return await serveBlock(store, request, body, { context, staged: false, moves });
}

/** Bytes of a message that learning gives rise to: what is attached. */
export function attachedBytes({ attached }: Message): number {
  return attached.reduce((sum, { length }) => sum + length, 0);
}
