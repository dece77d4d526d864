import { assert, type Revision } from '@webdfs/base';
import { type Change, type Compare, type MapEntry, MapSnapshot, type Transaction } from '@webdfs/cluster';

/** The map store as it should be, in one step per transaction, with every snapshot it ever had. */
export class SimulatedMap {
  readonly #keys = new Map<string, MapEntry>();
  readonly history: MapSnapshot[] = [MapSnapshot.empty];

  get revision(): Revision {
    return this.history.length - 1;
  }

  get newest(): MapSnapshot {
    return this.at(this.revision);
  }

  at(revision: Revision): MapSnapshot {
    const snapshot = this.history[revision];
    assert(snapshot !== undefined, 'the map has been at this revision');
    return snapshot;
  }

  /** A cluster of so many nodes with one group of three copies. */
  found(count: number): void {
    const nodes = Array.from({ length: count }, (_, i) => ({ id: i + 1, weight: 65_536, labels: {} }));
    const settled = { algorithm: 'wrd', version: 1, seed: 1, copies: 3, subclusters: [{ id: 1, nodes }] };
    const policies = [{ id: 1, name: 'replicas=3', copies: 3, minCopies: 2, minCopiesSince: 0 }];
    this.put('slice/1/0', {});
    this.put('map', { cluster: '0'.repeat(32), name: 's', era: 1, groupBits: 0, policies, settled, out: [] });
    this.put('controller', { node: 1, session: 1 });
    for (const { id } of nodes) this.put(`disk/${id}`, { id: `disk of ${id}`, founding: true });
  }

  transact({ compare, write }: Transaction): { readonly done: boolean; readonly revision: Revision } {
    if (!compare.every((each) => this.#holds(each))) return { done: false, revision: this.revision };
    const effective = write.filter((each) => each.type === 'put' || this.#keys.has(each.key));
    if (effective.length === 0) return { done: true, revision: this.revision };
    const revision = this.revision + 1;
    const changes = effective.map((each): Change['changes'][number] => {
      const before = this.#keys.get(each.key);
      this.#keys.delete(each.key);
      if (each.type === 'delete') return { key: each.key, entry: undefined };
      const createRevision = before?.createRevision ?? revision;
      const entry = { key: each.key, value: each.value, createRevision, modRevision: revision };
      this.#keys.set(each.key, entry);
      return { key: each.key, entry };
    });
    this.history.push(this.newest.next({ revision, changes }).snapshot);
    return { done: true, revision };
  }

  put(key: string, value: unknown): Revision {
    return this.transact({ compare: [], write: [{ type: 'put', key, value: JSON.stringify(value) }] }).revision;
  }

  remove(key: string): void {
    this.transact({ compare: [], write: [{ type: 'delete', key }] });
  }

  #holds(compare: Compare): boolean {
    if (compare.type === 'modified') return (this.#keys.get(compare.key)?.modRevision ?? 0) === compare.is;
    if (compare.type === 'created') return (this.#keys.get(compare.key)?.createRevision ?? 0) === compare.is;
    for (const entry of this.#keys.values()) {
      if (entry.key.startsWith(compare.prefix) && entry.modRevision > compare.notAfter) return false;
    }
    return true;
  }
}
