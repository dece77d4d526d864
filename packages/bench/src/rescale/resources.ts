import type { Rates } from '@webdfs/rescale';
import { PLATFORM } from './scenario.ts';

/** What sets the pace, on the published platform. */
export interface Resources {
  readonly name: string;
  readonly rates: Rates;
}

const { network, drive } = PLATFORM;

/** Data in memory: only the network counts. */
export const MEMORY: Resources = { name: 'network', rates: { network, read: Infinity, write: Infinity } };
/** One shared device, as fast at reading as at writing. */
export const DEVICE: Resources = { name: 'storage', rates: { network: Infinity, read: drive, write: drive } };
/** Both at the same time. */
export const BOTH: Resources = { name: 'both', rates: { network, read: network / 2, write: network / 2 } };
/** A drive behind the network. */
export const DRIVE: Resources = { name: 'drive', rates: { network, read: drive, write: drive } };

/** What a drive loses where several streams take turns: 8 ms for every MiB. */
export const DRIVE_INTERLEAVING = { runBytes: 1_048_576, switchSeconds: 0.008 } as const;
