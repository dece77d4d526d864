import { type Clock, codeOf, type Log, messageOf, type Timer, WebdfsError } from '@webdfs/base';
import type { OtherSecret, Secrets } from './credentials.ts';
import { secretName } from './token.ts';

/** The secrets of a node that nodes prove themselves by. */
export type SecretSet = Pick<Secrets, 'clusterSecret'> & { readonly otherSecrets: readonly OtherSecret[] };

/** Secrets that are accepted beside the present one, at most. */
export const MAX_OTHERS = 4;
/** How often it is looked whether one has run out, at most. */
const LOOK_MS = 60_000;

export interface SecretKeeperOptions {
  readonly secrets: Secrets;
  /** Keeps them durably, before they are used; undefined: they are not this node's to change. */
  readonly save: ((secrets: Secrets) => Promise<void>) | undefined;
  /** Links are made by these from now on, 64 hex digits each, the present one first. */
  readonly apply: (secrets: readonly string[]) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** The secrets that are accepted now, the present one first. */
export function acceptedNow(secrets: Secrets, nowMs: number): readonly string[] {
  const others = (secrets.otherSecrets ?? []).filter(({ untilMs }) => untilMs > nowMs);
  return [secrets.clusterSecret, ...others.map(({ secret }) => secret)];
}

const MAX_FORMER = 16;

function formerAfter(before: Secrets, { clusterSecret }: SecretSet): Pick<Secrets, 'formerNames'> {
  if (before.clusterSecret === clusterSecret) return {};
  return { formerNames: [...(before.formerNames ?? []), secretName(before)].slice(-MAX_FORMER) };
}

/** Holds a node's secrets while they are changed, and forgets those that have run out. */
export class SecretKeeper implements Disposable {
  readonly #options: SecretKeeperOptions;
  #secrets: Secrets;
  #timer: Timer | undefined;

  constructor(options: SecretKeeperOptions) {
    this.#options = options;
    this.#secrets = options.secrets;
    this.#watch();
  }

  /** Those that have not run out. */
  get set(): SecretSet {
    const nowMs = this.#options.clock.now();
    const { clusterSecret, otherSecrets = [] } = this.#secrets;
    return { clusterSecret, otherSecrets: otherSecrets.filter(({ untilMs }) => untilMs > nowMs) };
  }

  get accepted(): readonly string[] {
    return acceptedNow(this.#secrets, this.#options.clock.now());
  }

  /** @throws UNSUPPORTED if they are not this node's to change */
  async take(set: SecretSet): Promise<void> {
    const { save, apply, log } = this.#options;
    if (save === undefined) {
      throw new WebdfsError('UNSUPPORTED', 'the nodes of "webdfs up" are reached from their own machine only');
    }
    if (set.otherSecrets.length > MAX_OTHERS) throw new WebdfsError('TOO_LARGE', `more than ${MAX_OTHERS} secrets`);
    const secrets = { ...this.#secrets, ...set, ...formerAfter(this.#secrets, set) };
    await save(secrets);
    this.#secrets = secrets;
    apply(this.accepted);
    log.info('secrets', { accepted: this.accepted.length });
    this.#watch();
  }

  #watch(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if ((this.#secrets.otherSecrets ?? []).length === 0) return;
    this.#timer = this.#options.clock.after(LOOK_MS, () => void this.#look());
  }

  async #look(): Promise<void> {
    try {
      if (this.set.otherSecrets.length < (this.#secrets.otherSecrets ?? []).length) await this.take(this.set);
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      this.#options.log.warn('secrets', { error: messageOf(error) });
    }
    this.#watch();
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
  }
}
