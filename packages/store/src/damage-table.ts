import { asGroupId, asPolicyId, type Clock, fromHex, type GroupKey, type Log, toHex } from '@webdfs/base';
import { damageRowKey, type DamageValue, packDamage } from './state-rows.ts';
import type { Damage } from './store.ts';

/** A place that is known to be damaged. */
export interface DamagedPlace extends DamageValue {
  readonly volume: number;
  readonly place: number;
}

/** More damage than this is not remembered one by one: the disk is gone. */
const MAX_DAMAGE = 100_000;

/**
 * Places known to be damaged. Each has a `d` row, so that a crash does not forget it; a place whose rows have all moved
 * elsewhere (repair) is no longer damage.
 */
export class DamageTable {
  readonly #known = new Map<string, DamagedPlace>();
  readonly #perVolume = new Map<number, number>();
  #settled = 0;
  readonly #listeners: ((damage: Damage) => void)[] = [];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #put: (key: Uint8Array, value: Uint8Array | undefined) => void;

  constructor(options: { clock: Clock; log: Log; put: (key: Uint8Array, value: Uint8Array | undefined) => void }) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#put = options.put;
  }

  /** Places that somebody may still need. */
  get size(): number {
    return this.#known.size - this.#settled;
  }

  /** P11: a head was unreadable, so the tail of some group may be missing. */
  get suspect(): boolean {
    for (const damage of this.#known.values()) if (damage.headLost && damage.settled !== true) return true;
    return false;
  }

  isDamaged(volume: number): boolean {
    return (this.#perVolume.get(volume) ?? 0) > 0;
  }

  *unsettled(): Generator<DamagedPlace> {
    for (const damage of this.#known.values()) if (damage.settled !== true) yield damage;
  }

  /** Nothing here needs the place any more. */
  settle({ volume, place }: DamagedPlace): void {
    const known = this.#known.get(`${volume}:${place}`);
    if (known === undefined || known.settled === true) return;
    const { volume: _volume, place: _place, ...value } = known;
    const settled: DamageValue = { ...value, settled: true };
    this.#remember({ ...settled, volume, place });
    this.#put(damageRowKey(volume, place), packDamage(settled));
  }

  onDamage(listener: (damage: Damage) => void): void {
    this.#listeners.push(listener);
  }

  /** Takes over a row of the index. */
  restore(volume: number, place: number, value: DamageValue): void {
    this.#remember({ ...value, volume, place });
  }

  /** Writes the `d` row, unless the place is known, and tells the listeners. */
  report(damage: {
    volume: number;
    place: number;
    length: number;
    what: string;
    headLost?: boolean;
    key?: Uint8Array;
    group?: GroupKey;
  }): void {
    const { volume, place, length, what, key, group } = damage;
    if (this.#isNews(volume, place, damage.headLost ?? false)) {
      const value: DamageValue = {
        length,
        foundMs: this.#clock.now(),
        what,
        headLost: damage.headLost ?? false,
        ...(key === undefined ? {} : { key: toHex(key) }),
        ...(group === undefined ? {} : { policy: group.policy, group: group.group }),
      };
      this.#remember({ ...value, volume, place });
      this.#put(damageRowKey(volume, place), packDamage(value));
      this.#log.error('damage', { volume, place, length, what });
    }
    const told: Damage = {
      volume,
      place,
      what,
      ...(key === undefined ? {} : { key }),
      ...(group === undefined ? {} : { group }),
    };
    for (const listener of this.#listeners) listener(told);
  }

  #isNews(volume: number, place: number, headLost: boolean): boolean {
    const known = this.#known.get(`${volume}:${place}`);
    return known === undefined ? this.#known.size < MAX_DAMAGE : headLost && !known.headLost;
  }

  /** No row points to this place any more. */
  repaired(volume: number, place: number): void {
    if (this.#known.size > 0) this.#forget(volume, place);
  }

  /** The volume is gone, with its damage. */
  forgetVolume(volume: number): void {
    if (!this.isDamaged(volume)) return;
    for (const damage of this.#known.values()) {
      if (damage.volume === volume) this.#forget(volume, damage.place);
    }
  }

  #remember(damage: DamagedPlace): void {
    const name = `${damage.volume}:${damage.place}`;
    const known = this.#known.get(name);
    this.#known.set(name, damage);
    this.#settled += Number(damage.settled === true) - Number(known?.settled === true);
    if (known !== undefined) return;
    this.#perVolume.set(damage.volume, (this.#perVolume.get(damage.volume) ?? 0) + 1);
  }

  #forget(volume: number, place: number): void {
    const known = this.#known.get(`${volume}:${place}`);
    if (known === undefined) return;
    this.#known.delete(`${volume}:${place}`);
    if (known.settled === true) this.#settled -= 1;
    this.#perVolume.set(volume, this.#perVolume.get(volume)! - 1);
    this.#put(damageRowKey(volume, place), undefined);
  }

  list(): (Damage & { readonly length: number; readonly headLost: boolean })[] {
    return [...this.unsettled()].map((damage) => ({
      volume: damage.volume,
      place: damage.place,
      length: damage.length,
      headLost: damage.headLost,
      what: damage.what,
      ...(damage.key === undefined ? {} : { key: fromHex(damage.key) }),
      ...(damage.policy === undefined || damage.group === undefined
        ? {}
        : { group: { policy: asPolicyId(damage.policy), group: asGroupId(damage.group) } }),
    }));
  }
}
