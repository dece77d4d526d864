import type { LogLevel } from '@webdfs/base';
import type { ObjectSizes } from '@webdfs/client';
import { type ClusterParameters, parametersWith } from '@webdfs/cluster';
import type { ReplicaNodeOptions } from '@webdfs/replica';
import type { StoreTuning } from '@webdfs/store';

/** A world on a small scale: volumes that fill within seconds, blocks of a kilobyte, garbage that is young. */
export interface Scale {
  readonly diskBytes: number;
  readonly store: StoreTuning;
  readonly replica: Pick<ReplicaNodeOptions, 'garbage' | 'leftovers' | 'repair' | 'source'>;
  readonly sizes: ObjectSizes;
  readonly groupBits: number;
  /** Lines of nodes that go into the transcript; undefined: none. */
  readonly logLevel: LogLevel | undefined;
}

export const SCALE: Scale = {
  diskBytes: 64 * 1024 * 1024,
  store: {
    maxVolumeBytes: 48 * 1024,
    reserveBytes: 256 * 1024,
    ballast: false,
    tombstoneKeepMs: 60_000,
    stagingBytes: 4 * 1024 * 1024,
    // few, so that keys meet in them
    locationSlots: 16,
  },
  replica: {
    garbage: { releaseMs: 8_000, orphanMs: 6_000, scanMs: 5_000 },
    leftovers: { dropMs: 4_000, lookMs: 3_000 },
    repair: { lookMs: 2_000 },
    source: { firstPauseMs: 250, lastPauseMs: 2_000, silenceMs: 5_000 },
  },
  sizes: { blockBytes: 1_024, inlineBytes: 256, maxPutBytes: 1_000_000, minPartBytes: 64 },
  groupBits: 2,
  logLevel: 'info',
};

export const PARAMETERS: ClusterParameters = parametersWith({
  lifeMs: 5_000,
  outAfterMs: 7_000,
  maxBackoffMs: 4_000,
});
