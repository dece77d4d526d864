/** A copy of one piece of an object: of its record, or of one of its blocks. */
export interface Copy {
  readonly node: number;
  /** All its bytes were read and verified where it lies. */
  readonly good: boolean;
  /** The record's: each object has as many of those as copies. */
  readonly isRecord: boolean;
}

/** The store that a run is put on. */
export interface BlogTarget {
  /** @throws if it is not acknowledged */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** @throws if it is not answered; undefined: there is no such object */
  get(key: string): Promise<Uint8Array | undefined>;
  /** Asks every node that should have one. */
  copies(key: string): Promise<readonly Copy[]>;
  nodes(): Promise<readonly number[]>;
  /** Ends a node's process without a word; gives its number. Somebody starts it again. */
  kill(): Promise<number>;
  /** Resolves when all nodes are up and every object has its copies. */
  settled(): Promise<void>;
  bytesOnDisk(): Promise<number>;
}
