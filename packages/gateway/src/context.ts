import type { ObjectStore } from '@webdfs/client';
import type { KeyRing } from './keys.ts';
import type { Reporter } from './reports.ts';
import type { SigningKeys } from './s3/signing-keys.ts';

/** What the requests of one door share. */
export interface Context {
  readonly store: ObjectStore;
  readonly keys: KeyRing;
  readonly signingKeys: SigningKeys;
  /** Of buckets that are made without one. */
  readonly region: string;
  /** Domains before which a bucket's name may stand, lower case. */
  readonly domains: readonly string[];
  readonly reporter: Reporter | undefined;
}
