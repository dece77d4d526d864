import type { ObjectStore } from '@webdfs/client';

/** Pieces of an object as the object layer lends them. */
export type Pieces = Extract<Awaited<ReturnType<ObjectStore['get']>>['body'], AsyncIterable<unknown>>;
export type Piece = Pieces extends AsyncIterable<infer P> ? P : never;

/** An answer that streams: exactly `length` bytes, or the connection breaks. */
export class PieceBody {
  readonly pieces: Pieces;
  readonly length: number;

  constructor(pieces: Pieces, length: number) {
    this.pieces = pieces;
    this.length = length;
  }
}

/**
 * An answer that may take long. If it is not ready soon, `200` and white space go out first, and an error then travels as
 * a document under that `200`: S3 does so for CompleteMultipartUpload, CopyObject and UploadPartCopy only.
 */
export class SlowBody {
  /** An XML document without its declaration. */
  readonly work: Promise<string>;

  constructor(work: Promise<string>) {
    this.work = work;
  }
}

/** What a handler answers. The door adds length, date and request ids. */
export interface Answer {
  readonly status: number;
  /** Flat: name, value, name, value. */
  readonly headers: readonly string[];
  readonly body?: string | Uint8Array | PieceBody | SlowBody;
  /** Of an answer to HEAD, whose body stays away. */
  readonly length?: number;
}
