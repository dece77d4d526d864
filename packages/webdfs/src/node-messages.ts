import { ERROR_CODES, type ErrorCode } from '@webdfs/base';

/** What the supervisor and its node processes say to each other over their IPC channel. */

export type FromNode =
  /** The door is open and every group this node is primary of is served. */
  | { readonly type: 'ready'; readonly node: number; readonly address: string }
  /** It cannot start, and ends. */
  | { readonly type: 'failed'; readonly code: ErrorCode; readonly message: string }
  /** Once a second: the event loop turns. */
  | { readonly type: 'beat' };

export type ToNode = { readonly type: 'stop' };

export const BEAT_MS = 1_000;

function isNodeId(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) > 0;
}

export function isFromNode(message: unknown): message is FromNode {
  if (typeof message !== 'object' || message === null || !('type' in message)) return false;
  if (message.type === 'ready') {
    return 'address' in message && typeof message.address === 'string' && 'node' in message && isNodeId(message.node);
  }
  if (message.type === 'failed') {
    if (!('code' in message) || !('message' in message) || typeof message.message !== 'string') return false;
    return ERROR_CODES.some((code) => code === message.code);
  }
  return message.type === 'beat';
}

export function isToNode(message: unknown): message is ToNode {
  return typeof message === 'object' && message !== null && 'type' in message && message.type === 'stop';
}
