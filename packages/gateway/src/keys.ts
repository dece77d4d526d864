import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';
import { WebdfsError } from '@webdfs/base';

export interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Access keys of one ring. */
export const MAX_KEYS = 4_096;

const ACCESS_KEY_ID = /^[A-Za-z0-9_.@+=-]{3,128}$/;

/**
 * The bearer token of an access key: whoever has the key can make it, and it tells nothing about the secret.
 */
export function bearerTokenOf(key: AccessKey): string {
  return createHmac('sha256', key.secretAccessKey).update(`webdfs bearer 1\n${key.accessKeyId}`).digest('base64url');
}

function digestOf(token: string): Uint8Array {
  return hash('sha256', token, 'buffer');
}

/** Who may come in: access keys with their secrets, and the bearer token of each. Secrets never show in logs or dumps. */
export class KeyRing {
  readonly #secrets = new Map<string, string>();
  readonly #tokens = new Map<string, Uint8Array>();

  constructor(keys: Iterable<AccessKey> = []) {
    for (const key of keys) this.set(key);
  }

  get size(): number {
    return this.#secrets.size;
  }

  /**
   * Adds a key or changes its secret; its bearer token changes with it.
   *
   * @throws WebdfsError INVALID for an id or a secret that no client could send, TOO_LARGE beyond `MAX_KEYS`
   */
  set(key: AccessKey): void {
    if (!ACCESS_KEY_ID.test(key.accessKeyId)) {
      throw new WebdfsError('INVALID', 'an access key id has 3 to 128 letters, digits, or characters of _.@+=-');
    }
    if (key.secretAccessKey.length < 8) throw new WebdfsError('INVALID', 'a secret has at least 8 characters');
    if (this.#secrets.size >= MAX_KEYS && !this.#secrets.has(key.accessKeyId)) {
      throw new WebdfsError('TOO_LARGE', `a ring holds at most ${MAX_KEYS} keys`);
    }
    this.#secrets.set(key.accessKeyId, key.secretAccessKey);
    this.#tokens.set(key.accessKeyId, digestOf(bearerTokenOf(key)));
  }

  delete(accessKeyId: string): void {
    this.#secrets.delete(accessKeyId);
    this.#tokens.delete(accessKeyId);
  }

  secret(accessKeyId: string): string | undefined {
    return this.#secrets.get(accessKeyId);
  }

  /** The access key whose token this is. Digests are compared, each in constant time. */
  bearer(token: string): string | undefined {
    const digest = digestOf(token);
    let found: string | undefined;
    for (const [accessKeyId, known] of this.#tokens) if (timingSafeEqual(digest, known)) found = accessKeyId;
    return found;
  }

  toJSON(): { keys: number } {
    return { keys: this.size };
  }

  [inspect.custom](): string {
    return `KeyRing { ${this.size} keys }`;
  }
}
