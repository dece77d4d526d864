import { SIGNING_KEYS } from '../http/limits.ts';
import { deriveSigningKey, type Scope } from './sigv4.ts';

/**
 * Derived signing keys by access key, day, region and service, the `SIGNING_KEYS` newest. An entry knows the secret it
 * came from, so that a changed secret never meets an old key.
 */
export class SigningKeys {
  readonly #kept = new Map<string, { secret: string; key: Uint8Array }>();
  readonly #limit: number;

  constructor(limit = SIGNING_KEYS) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** The key, kept or derived; deriving keeps nothing, see `keep`. */
  key(scope: Scope, secret: string): Uint8Array {
    const kept = this.#kept.get(nameOf(scope));
    return kept !== undefined && kept.secret === secret ? kept.key : deriveSigningKey(secret, scope);
  }

  /** Called once a signature was right: strangers cannot push keys out with made-up regions. */
  keep(scope: Scope, secret: string, key: Uint8Array): void {
    const name = nameOf(scope);
    if (this.#kept.get(name)?.key === key) return;
    this.#kept.delete(name);
    if (this.#kept.size >= this.#limit) {
      for (const oldest of this.#kept.keys()) {
        this.#kept.delete(oldest);
        break;
      }
    }
    this.#kept.set(name, { secret, key });
  }
}

function nameOf(scope: Scope): string {
  return `${scope.accessKeyId}/${scope.day}/${scope.region}/${scope.service}`;
}
