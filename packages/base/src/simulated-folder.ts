import type { SeededRandom } from './random.ts';
import { SimulatedInode } from './simulated-inode.ts';

export type SimulatedNode = SimulatedInode | SimulatedFolder;

/** Names that change together: to what, or undefined if the name goes. */
export type FolderChange = readonly (readonly [name: string, node: SimulatedNode | undefined])[];

function applyChange(entries: Map<string, SimulatedNode>, change: FolderChange): void {
  for (const [name, node] of change) {
    if (node === undefined) entries.delete(name);
    else entries.set(name, node);
  }
}

/** One folder of a simulated disk: the names that programs see, those on stable storage, and the changes in between. */
export class SimulatedFolder {
  readonly entries = new Map<string, SimulatedNode>();
  readonly #durable = new Map<string, SimulatedNode>();
  #journal: FolderChange[] = [];

  change(change: FolderChange): void {
    applyChange(this.entries, change);
    this.#journal.push(change);
  }

  /** How many changes a sync that begins now promises. Only `settle` and `cut` take changes away. */
  mark(): readonly FolderChange[] {
    return [...this.#journal];
  }

  settle(marked: readonly FolderChange[]): void {
    const promised = new Set(marked);
    for (const change of this.#journal) if (promised.has(change)) applyChange(this.#durable, change);
    this.#journal = this.#journal.filter((change) => !promised.has(change));
  }

  /** A power cut: a prefix of the unsynced changes survives, here and in the folders below. */
  cut(random: SeededRandom, filler: (count: number) => Uint8Array): void {
    for (const change of this.#journal.slice(0, random.below(this.#journal.length + 1))) {
      applyChange(this.#durable, change);
    }
    this.#journal = [];
    this.entries.clear();
    for (const [name, node] of this.#durable) this.entries.set(name, node);
    for (const node of this.entries.values()) node.cut(random, filler);
  }

  /** A folder with the names that programs see in this one, all of them on stable storage. */
  copy(): SimulatedFolder {
    const copy = new SimulatedFolder();
    for (const [name, node] of this.entries) copy.change([[name, node.copy()]]);
    copy.settle(copy.mark());
    return copy;
  }

  /** Every file below, with its path. */
  *files(path: string): Generator<[path: string, inode: SimulatedInode]> {
    for (const [name, node] of this.entries) {
      if (node instanceof SimulatedInode) yield [`${path}/${name}`, node];
      else yield* node.files(`${path}/${name}`);
    }
  }
}
