import type { NodeId, SeededRandom } from '@webdfs/base';
import type { IOEffect, IOEvent, RatesOf, Transfer } from '@webdfs/rescale';

/**
 * The seven replaceable parts of Pufferbench, by the names of its authors (Cheriere, Dorier, Antoniu, PDSW-DISCS 2018). A run has
 * four steps: plan the migration, generate the data, execute (this alone is timed), gather what the nodes saw.
 */

/** Nodes before and after. */
export interface Membership {
  readonly before: readonly NodeId[];
  readonly after: readonly NodeId[];
  readonly copies: number;
}

/** One file, or chunk of one: it moves as a whole. */
export interface PlacedFile {
  readonly bytes: number;
  readonly before: readonly NodeId[];
  readonly after: readonly NodeId[];
}

/** How many files, of what size? */
export interface MetadataGenerator {
  readonly name: string;
  /** Sizes in bytes; together about `totalBytes`, which is unique data, without copies. */
  sizes(totalBytes: number): number[];
}

/** Which nodes hold which file, before and after? */
export interface DataDistributionGenerator {
  readonly name: string;
  distribute(sizes: readonly number[], membership: Membership, random: SeededRandom): PlacedFile[];
}

/** What a scheduler may know. */
export interface ScheduleInput {
  readonly files: readonly PlacedFile[];
  readonly membership: Membership;
  readonly ratesOf: RatesOf;
  readonly random: SeededRandom;
}

/** Transfers in the order of their turns, each named by the position of its file. */
export interface Schedule {
  readonly transfers: readonly Transfer[];
  /** The least time that these transfers take, whoever executes them. */
  readonly seconds: number;
}

/** Which transfers turn "before" into "after"? */
export interface DataTransferScheduler {
  readonly name: string;
  schedule(input: ScheduleInput): Schedule;
}

/** A dispatcher at work: events in, effects out. */
export interface Dispatch {
  step(event: IOEvent): readonly IOEffect[];
}

/** Which node reads, sends, receives, writes what, and in what order? */
export interface IODispatcher {
  readonly name: string;
  /** @param nodes  those that this dispatcher speaks for: all in simulated time, one in a process */
  open(transfers: readonly Transfer[], nodes: readonly NodeId[]): Dispatch;
}

/** How are bytes read and written? What is done is told by a call, so that it works in simulated time, too. */
export interface Storage {
  /** Step two: the node has so many bytes of a file from now on. */
  generate(node: NodeId, file: number, bytes: number): void;
  read(node: NodeId, file: number, bytes: number, done: (payload: Uint8Array) => void): void;
  /** Done when the bytes are durable. */
  write(node: NodeId, file: number, bytes: number, payload: Uint8Array, done: () => void): void;
}

/** How do bytes get across? What happens at the other end is told by a call too, unless that is another process, which then tells itself. */
export interface Network {
  /** Carries a receiver's wish to the node that serves it. */
  ask(transfer: Transfer, arrived: () => void): void;
  send(
    transfer: Transfer,
    payload: Uint8Array,
    on: { sent: () => void; received: (payload: Uint8Array) => void },
  ): void;
}

/** What a validator saw of one placement. */
export interface DistributionFindings {
  /** Fullest node by mean of all. */
  readonly fullest: number;
  /** What is wrong, in words; empty if all is well. */
  readonly faults: readonly string[];
}

/** Load per node, copies per file: is the placement what it should be? */
export interface DataDistributionValidator {
  validate(
    sizes: readonly number[],
    holders: (file: number) => ReadonlySet<NodeId>,
    expected: { readonly nodes: readonly NodeId[]; readonly copies: number; readonly fullest: number },
  ): DistributionFindings;
}
