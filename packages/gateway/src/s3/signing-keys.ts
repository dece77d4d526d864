import { SIGNING_KEYS } from '../http/limits.ts';
import { deriveSigningKey, type Scope, scopeText, SigningKey } from './sigv4.ts';

/** A credential as it stands in a signature, read, with the key that verifies it. */
export interface KnownCredential {
  readonly scope: Scope;
  /** See `scopeText`. */
  readonly scopeText: string;
  /** Of the access key; the signing key comes from it. */
  readonly secret: string;
  readonly key: SigningKey;
}

/** Reads and derives what `SigningKeys` keeps. */
export function knowCredential(scope: Scope, secret: string): KnownCredential {
  return { scope, scopeText: scopeText(scope), secret, key: new SigningKey(deriveSigningKey(secret, scope)) };
}

/**
 * Signing keys by credential (`access key/day/region/service/aws4_request`), the `SIGNING_KEYS` newest. An entry knows the
 * secret it came from, so that a changed secret never meets an old key.
 */
export class SigningKeys {
  readonly #kept = new Map<string, KnownCredential>();
  readonly #limit: number;

  constructor(limit = SIGNING_KEYS) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#kept.size;
  }

  find(credential: string): KnownCredential | undefined {
    return this.#kept.get(credential);
  }

  /** Called once a signature was right: strangers cannot push keys out with made-up regions. */
  keep(credential: string, known: KnownCredential): void {
    this.#kept.delete(credential);
    if (this.#kept.size >= this.#limit) {
      for (const oldest of this.#kept.keys()) {
        this.#kept.delete(oldest);
        break;
      }
    }
    this.#kept.set(credential, known);
  }
}
