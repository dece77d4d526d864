import type { NodeId } from '@webdfs/base';
import type { Transfer } from './parcel.ts';

/** What happened on a node. Each event belongs to one node: the one that serves, or the one that receives. */
export type IOEvent =
  | { readonly type: 'started' }
  /** At `transfer.from`: the receiver wants it now. */
  | { readonly type: 'asked'; readonly transfer: Transfer }
  /** At `node`: the parcel is in memory. */
  | { readonly type: 'read'; readonly node: NodeId; readonly parcel: number }
  /** At `transfer.from`: the bytes have left. */
  | { readonly type: 'sent'; readonly transfer: Transfer }
  /** At `transfer.to`: the bytes are in memory. */
  | { readonly type: 'received'; readonly transfer: Transfer }
  /** At `transfer.to`: the bytes are durable. */
  | { readonly type: 'written'; readonly transfer: Transfer }
  /** A `wait` is over. */
  | { readonly type: 'woke' };

/** What is to be done about it. */
export type IOEffect =
  | { readonly type: 'ask'; readonly transfer: Transfer }
  | { readonly type: 'read'; readonly node: NodeId; readonly parcel: number; readonly bytes: number }
  /** The bytes that were just read or received stay in memory, until `forget`. */
  | { readonly type: 'keep'; readonly node: NodeId; readonly parcel: number }
  | { readonly type: 'forget'; readonly node: NodeId; readonly parcel: number }
  /** Of what is kept; so is a write. */
  | { readonly type: 'send'; readonly transfer: Transfer }
  | { readonly type: 'write'; readonly transfer: Transfer }
  | { readonly type: 'wait'; readonly seconds: number };
