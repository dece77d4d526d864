import type { Piece } from '@webdfs/wire';

/** A bucket as its owner made it. */
export interface Bucket {
  readonly id: number;
  readonly name: string;
  readonly createdMs: number;
  /** Who made it: an access key id. */
  readonly owner: string;
  /** `private`; `public-read` lets anyone get and list over the plain HTTP door and S3. */
  readonly access: 'private' | 'public-read';
  readonly region: string;
}

/** What is kept of an object beside its bytes; header names in lower case. */
export interface ObjectFacts {
  /** content-type, cache-control, content-disposition, content-encoding, content-language, expires, … as sent. */
  readonly headers: Readonly<Record<string, string>>;
  /** User metadata: names without `x-amz-meta-`. */
  readonly user: Readonly<Record<string, string>>;
  /** Base64, by algorithm: crc32, crc32c, crc64nvme, sha1, sha256. */
  readonly checksums?: Readonly<Record<string, string>>;
  /** FULL_OBJECT or COMPOSITE; absent without checksums. */
  readonly checksumType?: string;
}

export interface ObjectInfo extends ObjectFacts {
  readonly bucket: string;
  readonly key: Uint8Array;
  readonly size: number;
  /** Without quotes. */
  readonly etag: string;
  readonly modifiedMs: number;
  /** Number of parts it was uploaded in; 0: in one piece. */
  readonly parts: number;
  /** Version within its group; opaque. */
  readonly version: string;
}

/** Bytes that come in: whole, or streamed with back-pressure by pull. */
export type ByteSource = Uint8Array | AsyncIterable<Uint8Array>;

export interface PutConditions {
  readonly ifMatch?: readonly string[];
  readonly ifNoneMatch?: readonly string[];
}

export interface PutOptions {
  readonly facts: ObjectFacts;
  /** If known: a body of another length is refused with INCOMPLETE_BODY. */
  readonly size?: number;
  readonly conditions?: PutConditions;
  /**
   * Asked once all bytes have come, before anything is committed; what it throws refuses the object. Receives the MD5 of
   * the bytes; may add checksums that were only known at the end.
   */
  readonly verify?: (md5: Uint8Array, size: number) => Partial<ObjectFacts> | undefined;
  readonly signal?: AbortSignal;
}

export interface PutResult {
  readonly etag: string;
  readonly size: number;
  readonly modifiedMs: number;
  readonly checksums?: Readonly<Record<string, string>>;
  readonly checksumType?: string;
}

/** A range as asked for; resolved against the size by the object layer. */
export type Range =
  | { readonly type: 'from'; readonly first: number; readonly last?: number }
  | { readonly type: 'suffix'; readonly count: number }
  /** One part of a multipart object (or 1 of a whole one). */
  | { readonly type: 'part'; readonly number: number };

export interface GetOptions {
  readonly range?: Range;
  /** Asked with what was found, before any byte is read; what it throws (NOT_MODIFIED, PRECONDITION_FAILED) ends the call. */
  readonly check?: (info: ObjectInfo) => void;
  readonly signal?: AbortSignal;
}

export interface GetResult {
  readonly info: ObjectInfo;
  /** The bytes that follow: [offset, offset + length). */
  readonly offset: number;
  readonly length: number;
  /** Whole, when they were inline; else pieces of at most 1 MiB, which the caller releases. */
  readonly body: Uint8Array | AsyncIterable<Piece>;
}

export interface ListedObject {
  readonly key: Uint8Array;
  readonly size: number;
  readonly etag: string;
  readonly modifiedMs: number;
}

export interface ListOptions {
  readonly prefix?: Uint8Array;
  readonly delimiter?: Uint8Array;
  /** Only keys (and common prefixes) after this one. */
  readonly after?: Uint8Array;
  /** 0..1 000. */
  readonly limit: number;
}

export interface Listing {
  readonly objects: readonly ListedObject[];
  readonly prefixes: readonly Uint8Array[];
  /** The last key or prefix given, when there is more: the `after` of the next page. */
  readonly next: Uint8Array | undefined;
}

export interface UploadInfo {
  readonly key: Uint8Array;
  /** 32 hex digits. */
  readonly uploadId: string;
  readonly initiatedMs: number;
  readonly checksumAlgorithm?: string;
  readonly checksumType?: string;
}

export interface PartInfo {
  readonly number: number;
  readonly size: number;
  readonly etag: string;
  readonly modifiedMs: number;
  readonly checksums?: Readonly<Record<string, string>>;
}

export interface CopyOptions {
  readonly source: { readonly bucket: string; readonly key: Uint8Array };
  /** Undefined: the source's. */
  readonly facts?: ObjectFacts;
  readonly check?: (source: ObjectInfo) => void;
  readonly conditions?: PutConditions;
  readonly signal?: AbortSignal;
}

/**
 * Buckets and objects: what every door speaks to. Keys are opaque bytes, 1..1 024 of them.
 *
 * Errors: NOT_FOUND with `details.what` = bucket | key | upload | part; ALREADY_EXISTS, NOT_EMPTY (buckets);
 * PRECONDITION_FAILED, RANGE_NOT_SATISFIABLE, INCOMPLETE_BODY, CHECKSUM_MISMATCH, TOO_LARGE, INVALID; and what must be
 * tried again: UNAVAILABLE, NO_QUORUM, BUSY; DISK_FULL.
 */
export interface ObjectStore {
  createBucket(name: string, options: { owner: string; access?: Bucket['access']; region?: string }): Promise<Bucket>;
  bucket(name: string): Promise<Bucket>;
  setBucketAccess(name: string, access: Bucket['access']): Promise<Bucket>;
  deleteBucket(name: string): Promise<void>;
  listBuckets(): Promise<Bucket[]>;

  put(bucket: string, key: Uint8Array, body: ByteSource, options: PutOptions): Promise<PutResult>;
  get(bucket: string, key: Uint8Array, options?: GetOptions): Promise<GetResult>;
  head(
    bucket: string,
    key: Uint8Array,
    options?: GetOptions,
  ): Promise<{ info: ObjectInfo; offset: number; length: number }>;
  /** True if the key was there. */
  remove(bucket: string, key: Uint8Array, conditions?: PutConditions): Promise<boolean>;
  copy(bucket: string, key: Uint8Array, options: CopyOptions): Promise<PutResult>;
  list(bucket: string, options: ListOptions): Promise<Listing>;

  createUpload(
    bucket: string,
    key: Uint8Array,
    options: { facts: ObjectFacts; checksumAlgorithm?: string; checksumType?: string },
  ): Promise<UploadInfo>;
  putPart(
    bucket: string,
    key: Uint8Array,
    part: { uploadId: string; number: number },
    body: ByteSource,
    options: Pick<PutOptions, 'size' | 'verify' | 'signal'>,
  ): Promise<PutResult>;
  copyPart(
    bucket: string,
    key: Uint8Array,
    part: { uploadId: string; number: number },
    options: CopyOptions & { range?: Range },
  ): Promise<PutResult>;
  completeUpload(
    bucket: string,
    key: Uint8Array,
    uploadId: string,
    options: {
      parts: readonly { number: number; etag: string; checksums?: Readonly<Record<string, string>> }[];
      conditions?: PutConditions;
      /** The whole object's checksum as the client believes it, by algorithm, base64. */
      checksums?: Readonly<Record<string, string>>;
      size?: number;
    },
  ): Promise<PutResult>;
  abortUpload(bucket: string, key: Uint8Array, uploadId: string): Promise<void>;
  listParts(
    bucket: string,
    key: Uint8Array,
    uploadId: string,
    options: { after: number; limit: number },
  ): Promise<{ upload: UploadInfo; parts: PartInfo[]; next: number | undefined }>;
  listUploads(
    bucket: string,
    options: ListOptions & { afterUploadId?: string },
  ): Promise<{
    uploads: UploadInfo[];
    prefixes: Uint8Array[];
    next: { key: Uint8Array; uploadId: string } | undefined;
  }>;
}
