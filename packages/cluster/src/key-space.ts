import type { Revision } from '@webdfs/base';
import type { Change, Compare, MapContents, MapEntry, Write } from './map-store.ts';

/** An entry, and the lease it is bound to. */
export interface StoredEntry extends MapEntry {
  readonly lease?: number;
}

function folderOf(key: string): string {
  const slash = key.indexOf('/');
  return slash === -1 ? '' : key.slice(0, slash);
}

/** All keys at one revision, in memory: what both houses of the map store compute on. Knows neither time nor disk. */
export class KeySpace {
  #revision: Revision = 0;
  /** By the part before the first slash, so that a range such as `down/` looks at its own keys only. */
  readonly #folders = new Map<string, Map<string, StoredEntry>>();

  get revision(): Revision {
    return this.#revision;
  }

  get(key: string): StoredEntry | undefined {
    return this.#folders.get(folderOf(key))?.get(key);
  }

  *entries(): Generator<StoredEntry> {
    for (const folder of this.#folders.values()) yield* folder.values();
  }

  contents(): MapContents {
    const entries: MapEntry[] = [];
    for (const { key, value, createRevision, modRevision } of this.entries()) {
      entries.push({ key, value, createRevision, modRevision });
    }
    return { revision: this.#revision, entries };
  }

  holds(compare: Compare): boolean {
    switch (compare.type) {
      case 'modified':
        return (this.get(compare.key)?.modRevision ?? 0) === compare.is;
      case 'created':
        return (this.get(compare.key)?.createRevision ?? 0) === compare.is;
      case 'range':
        return this.#newestOf(compare.prefix) <= compare.notAfter;
    }
  }

  #newestOf(prefix: string): Revision {
    const within = prefix.includes('/') ? (this.#folders.get(folderOf(prefix))?.values() ?? []) : this.entries();
    let newest = 0;
    for (const entry of within) if (entry.key.startsWith(prefix)) newest = Math.max(newest, entry.modRevision);
    return newest;
  }

  /** The writes that would change something: without deletions of what is not there. */
  effective(writes: readonly Write[]): readonly Write[] {
    return writes.filter((write) => write.type === 'put' || this.get(write.key) !== undefined);
  }

  /** Applies writes as one revision, greater than the present one. */
  apply(revision: Revision, writes: readonly Write[]): Change {
    this.#revision = revision;
    const changes = writes.map((write): Change['changes'][number] => {
      if (write.type === 'delete') {
        this.#remove(write.key);
        return { key: write.key, entry: undefined };
      }
      const entry: MapEntry = {
        key: write.key,
        value: write.value,
        createRevision: this.get(write.key)?.createRevision ?? revision,
        modRevision: revision,
      };
      this.put(write.lease === undefined ? entry : { ...entry, lease: write.lease });
      return { key: write.key, entry };
    });
    return { revision, changes };
  }

  /** Sets an entry as it stands in a snapshot. */
  put(entry: StoredEntry): void {
    const name = folderOf(entry.key);
    let folder = this.#folders.get(name);
    if (folder === undefined) {
      folder = new Map();
      this.#folders.set(name, folder);
    }
    folder.set(entry.key, entry);
  }

  /** Sets the revision of a snapshot. */
  restart(revision: Revision): void {
    this.#revision = revision;
  }

  #remove(key: string): void {
    this.#folders.get(folderOf(key))?.delete(key);
  }
}
