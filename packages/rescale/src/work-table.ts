import type { NodeId } from '@webdfs/base';
import type { Parcel } from './parcel.ts';
import { type Rates, type RatesOf, secondsFor } from './rates.ts';

/** Parcels and nodes by dense numbers, and what the nodes have to do so far: what a plan is made with. */
export class WorkTable {
  readonly nodes: readonly NodeId[];
  readonly parcels: readonly Parcel[];
  /** Node numbers of each parcel's holders and receivers. */
  readonly holders: readonly (readonly number[])[];
  readonly receivers: readonly (readonly number[])[];
  /** Who reads each parcel and sends its first copy. */
  readonly roots: Int32Array;
  readonly #rates: readonly Rates[];
  readonly #receive: Float64Array;
  readonly #send: Float64Array;
  readonly #read: Float64Array;

  constructor(parcels: readonly Parcel[], ratesOf: RatesOf) {
    const numbers = new Map<NodeId, number>();
    const numberOf = (node: NodeId): number => {
      const known = numbers.get(node);
      if (known !== undefined) return known;
      numbers.set(node, numbers.size);
      return numbers.size - 1;
    };
    this.parcels = parcels;
    this.holders = parcels.map(({ holders }) => holders.map(numberOf));
    this.receivers = parcels.map(({ receivers }) => receivers.map(numberOf));
    this.nodes = [...numbers.keys()];
    this.#rates = this.nodes.map(ratesOf);
    this.roots = new Int32Array(parcels.length).fill(-1);
    this.#receive = new Float64Array(this.nodes.length);
    this.#send = new Float64Array(this.nodes.length);
    this.#read = new Float64Array(this.nodes.length);
  }

  /** Counts what a parcel's receivers get. */
  admit(parcel: number): void {
    for (const node of this.receivers[parcel]!) this.#receive[node]! += this.bytes(parcel);
  }

  bytes(parcel: number): number {
    return this.parcels[parcel]!.bytes;
  }

  /** Makes a node the one that reads a parcel and sends its first copy, instead of the one before. */
  setRoot(parcel: number, node: number): void {
    const bytes = this.bytes(parcel);
    const old = this.roots[parcel]!;
    if (old >= 0) {
      this.#read[old]! -= bytes;
      this.#send[old]! -= bytes;
    }
    this.roots[parcel] = node;
    this.#read[node]! += bytes;
    this.#send[node]! += bytes;
  }

  /** One more copy that a node sends. */
  addSend(parcel: number, node: number): void {
    this.#send[node]! += this.bytes(parcel);
  }

  /** Seconds that sending takes a node once it sends so many bytes more. */
  sendSeconds(node: number, more: number): number {
    return secondsFor(this.#send[node]! + more, this.#rates[node]!.network);
  }

  deviceSeconds(node: number, moreRead: number): number {
    const { read, write } = this.#rates[node]!;
    return secondsFor(this.#receive[node]!, write) + secondsFor(this.#read[node]! + moreRead, read);
  }

  /** Seconds that a node is busy serving, and writing what it gets, once it serves a parcel as well. */
  serveSeconds(node: number, parcel: number): number {
    const bytes = this.bytes(parcel);
    return Math.max(this.sendSeconds(node, bytes), this.deviceSeconds(node, bytes));
  }

  /** Seconds that a node is busy as things stand. */
  #busySeconds(node: number): number {
    const received = secondsFor(this.#receive[node]!, this.#rates[node]!.network);
    return Math.max(this.sendSeconds(node, 0), this.deviceSeconds(node, 0), received);
  }

  busiestSeconds(): number {
    let most = 0;
    for (let node = 0; node < this.nodes.length; node++) most = Math.max(most, this.#busySeconds(node));
    return most;
  }
}
