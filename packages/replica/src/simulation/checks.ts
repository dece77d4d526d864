import { assert, type Sequence } from '@webdfs/base';
import type { GroupView } from '@webdfs/cluster';
import { KIND, type LogEntry } from '@webdfs/store';
import { requestOf } from '../group-log.ts';
import type { SimulatedNode } from './simulated-node.ts';

function nameOf(entry: LogEntry): string {
  const id = requestOf(entry);
  return `${entry.sequence}@${entry.ballot}:${id === undefined ? '' : Buffer.from(id.subarray(0, 8)).toString('hex')}`;
}

/** The invariants of the protocol (docs/internals/replication.md), as one who sees all nodes can check them. */
export class Checks {
  /** S4's `history`: what clients were told of, entry by entry. */
  readonly told: string[] = [];
  readonly #requests = new Map<string, Sequence>();
  /** The newest version of each key that anybody was told of. */
  readonly #floors = new Map<string, Sequence>();
  readonly #serving = new Map<number, number>();
  readonly #entries: LogEntry[] = [];
  acknowledged = 0;
  reads = 0;

  floorOf(key: Uint8Array): Sequence {
    return this.#floors.get(Buffer.from(key).toString('latin1')) ?? 0;
  }

  /** A client was told of everything up to `upTo`, by this node's log. */
  tell(node: SimulatedNode, upTo: Sequence): void {
    assert(upTo <= node.disk.commit, `node ${node.id} tells of what it committed only`);
    for (let sequence = 1; sequence <= Math.min(upTo, this.told.length); sequence++) {
      const name = nameOf(node.disk.entries[sequence - 1]!);
      assert(name === this.told[sequence - 1], `S4: told ${this.told[sequence - 1]}, now ${name} by node ${node.id}`);
    }
    for (let sequence = this.told.length + 1; sequence <= upTo; sequence++) {
      const entry = node.disk.entries[sequence - 1]!;
      const name = nameOf(entry);
      this.told.push(name);
      this.#entries.push(entry);
      const id = requestOf(entry);
      if (id === undefined) continue;
      const request = Buffer.from(id).toString('hex');
      const before = this.#requests.get(request);
      assert(before === undefined, `S5: request ${request} at ${before} and ${sequence}`);
      this.#requests.set(request, sequence);
    }
  }

  /** A version of a key was acknowledged or read. `floor`: what had been told of it when the operation began. */
  saw(key: Uint8Array, sequence: Sequence, floor: Sequence): void {
    assert(sequence >= floor, `S4: version ${sequence} after ${floor} was told of`);
    const name = Buffer.from(key).toString('latin1');
    this.#floors.set(name, Math.max(this.#floors.get(name) ?? 0, sequence));
  }

  /** A put that must not replace anything, by what came before it in the history. */
  created(key: Uint8Array, sequence: Sequence): void {
    const name = Buffer.from(key).toString('latin1');
    for (let before = sequence - 1; before >= 1; before--) {
      const entry = this.#entries[before - 1]!;
      if (Buffer.from(entry.key).toString('latin1') !== name) continue;
      assert(entry.kind === KIND.TOMBSTONE, `create at ${sequence} replaced ${before}`);
      return;
    }
  }

  /** S2, S3, S6, S9, S12 after an event. `view`: by the newest map. */
  all(nodes: readonly SimulatedNode[], view: GroupView): void {
    this.#oneServes(nodes);
    const holders = nodes.filter(({ id }) => view.inSync.includes(id) || view.eligible.includes(id));
    for (const node of holders) this.#holdsHistory(node);
    for (const [i, node] of holders.entries()) {
      for (const other of holders.slice(i + 1)) this.#arePrefixes(node, other);
    }
    for (const [i, node] of nodes.entries()) {
      for (const other of nodes.slice(i + 1)) this.#agree(node, other);
    }
  }

  #oneServes(nodes: readonly SimulatedNode[]): void {
    this.#serving.clear();
    for (const { id, state, map } of nodes) {
      if (state?.primary?.phase !== 'serve') continue;
      const { ballot } = state.primary;
      const other = this.#serving.get(ballot);
      assert(other === undefined, `S2: nodes ${other} and ${id} serve ballot ${ballot}`);
      this.#serving.set(ballot, id);
      assert(state.view.ballot === ballot, `S12: node ${id} serves another ballot than its map's`);
      assert(map.revision >= 0, 'a node has a map');
    }
  }

  #holdsHistory({ id, disk }: SimulatedNode): void {
    assert(disk.last >= this.told.length, `S3: node ${id} has ${disk.last} entries, ${this.told.length} were told of`);
    for (let i = 0; i < this.told.length; i++) {
      const name = nameOf(disk.entries[i]!);
      assert(name === this.told[i], `S3: node ${id} has ${name}, told was ${this.told[i]}`);
    }
  }

  #arePrefixes(a: SimulatedNode, b: SimulatedNode): void {
    const end = Math.min(a.disk.last, b.disk.last);
    for (let i = end - 1; i >= 0 && i >= end - 300; i--) {
      const one = a.disk.entries[i]!;
      const two = b.disk.entries[i]!;
      if (one === two) return;
      assert(one.ballot === two.ballot, `S9: node ${a.id} has ${nameOf(one)}, node ${b.id} ${nameOf(two)}`);
    }
  }

  #agree(a: SimulatedNode, b: SimulatedNode): void {
    for (let i = Math.min(a.disk.commit, b.disk.commit) - 1; i >= 0; i--) {
      const one = a.disk.entries[i]!;
      const two = b.disk.entries[i]!;
      if (one === two) return;
      assert(one.ballot === two.ballot, `S6: node ${a.id} committed ${nameOf(one)}, node ${b.id} ${nameOf(two)}`);
    }
  }
}
