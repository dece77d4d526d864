import type { NodeId } from '@webdfs/base';
import type { PullLimits, Rates, Transfer } from '@webdfs/rescale';
import type { NodeFigures } from '../execution.ts';
import type { StorageKind } from './node-storage.ts';

/** What a run tells the process of a node. */
export type ToNode =
  | {
      readonly type: 'prepare';
      readonly node: NodeId;
      /** Files that it holds at the start: position and bytes. */
      readonly files: readonly (readonly [file: number, bytes: number])[];
      /** Those that it takes part in, in the order of their turns. */
      readonly transfers: readonly Transfer[];
      readonly limits: PullLimits;
      /** Infinite ones are left out: they do not survive JSON. */
      readonly rates: Partial<Rates>;
      readonly storage: StorageKind;
    }
  | { readonly type: 'connect'; readonly ports: readonly (readonly [NodeId, number])[] }
  | { readonly type: 'start' }
  /** The run is over: what does the node hold? */
  | { readonly type: 'inspect' }
  | { readonly type: 'stop' };

/** What a node's process tells the run. */
export type FromNode =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'ready' }
  | { readonly type: 'finished' }
  | ({ readonly type: 'inspected' } & NodeReport);

export interface NodeReport {
  /** Times are those of the machine's clock, in seconds. */
  readonly figures: NodeFigures;
  /** Files that it holds whole, by position. */
  readonly intact: readonly number[];
  readonly damaged: readonly number[];
  /** Processor time of the process while it ran, seconds. */
  readonly cpuSeconds: number;
  /** How late its event loop was while it ran, milliseconds. */
  readonly delayMs: { readonly p99: number; readonly most: number };
}
