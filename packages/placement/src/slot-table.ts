import type { NodeId } from './ids.ts';
import { PlacementError } from './placement-error.ts';
import type { Placer, PublishInput } from './algorithm.ts';
import { byRank } from './by-rank.ts';
import type { DomainRule } from './domain-rule.ts';
import { placeableNodes } from './domains.ts';
import type { PublishedTable, Topology } from './topology.ts';

/** Groups of a published table: 2^16 of them with three copies are half a megabyte in the map. */
export const MAX_TABLE_BITS = 16;
/** A slot that nobody has. */
export const NOBODY = 0;

/** Bytes to base64 characters of a whole table. */
function textLength(groupBits: number, copies: number): number {
  return Math.ceil((2 ** groupBits * copies * 2) / 3) * 4;
}

function encode(slots: Uint16Array): string {
  const parts: string[] = [];
  for (const slot of slots) parts.push(String.fromCharCode(slot & 255, slot >>> 8));
  return btoa(parts.join(''));
}

/** @throws PlacementError INVALID if the text is not a table of that size */
function decode(table: PublishedTable): Uint16Array {
  const { groupBits, copies, rows } = table;
  if (
    typeof rows !== 'string' ||
    rows.length !== textLength(groupBits, copies) ||
    !/^[A-Za-z0-9+/]*={0,2}$/.test(rows)
  ) {
    throw new PlacementError(
      'INVALID',
      `the placement table is not 2^${groupBits} groups × ${copies} copies in base64`,
    );
  }
  const bytes = atob(rows);
  return Uint16Array.from(
    { length: 2 ** groupBits * copies },
    (_, i) => bytes.charCodeAt(2 * i) | (bytes.charCodeAt(2 * i + 1) << 8),
  );
}

/** What is wrong with the table of a topology; empty: it can be used. */
export function checkTable(topology: Topology): string[] {
  const { table } = topology;
  if (table === undefined) return [`${topology.algorithm} has no table: it must be published first`];
  const { groupBits, copies } = table;
  if (!Number.isInteger(groupBits) || groupBits < 0 || groupBits > MAX_TABLE_BITS) {
    return [`the placement table has 2^${groupBits} groups, allowed are 2^0 to 2^${MAX_TABLE_BITS}`];
  }
  if (copies !== topology.copies) return [`the placement table has ${copies} copies, the topology ${topology.copies}`];
  let slots: SlotTable;
  try {
    slots = SlotTable.read(table);
  } catch (error) {
    return [(error as Error).message];
  }
  const live = new Set(placeableNodes(topology).map((node) => node.id));
  for (let group = 0; group < slots.groups; group++) {
    const row = slots.row(group);
    const stranger = row.find((node) => !live.has(node));
    if (stranger !== undefined)
      return [`the placement table gives group ${group} to node ${stranger}, which has no weight`];
    if (new Set(row).size < row.length) return [`the placement table gives group ${group} twice to one node`];
  }
  return [];
}

/** Groups × copies node ids. */
export class SlotTable {
  readonly groups: number;
  readonly copies: number;
  readonly #slots: Uint16Array;

  private constructor(groups: number, copies: number, slots: Uint16Array) {
    this.groups = groups;
    this.copies = copies;
    this.#slots = slots;
  }

  static read(table: PublishedTable): SlotTable {
    return new SlotTable(2 ** table.groupBits, table.copies, decode(table));
  }

  /** A table of the wanted size, with what lies somewhere already; else nobody's. */
  static from({ groupBits, placed }: PublishInput, copies: number): SlotTable {
    if (!Number.isInteger(groupBits) || groupBits < 0 || groupBits > MAX_TABLE_BITS) {
      throw new PlacementError('INVALID', `group bits are ${groupBits}, a table may have 0 to ${MAX_TABLE_BITS}`);
    }
    const table = new SlotTable(2 ** groupBits, copies, new Uint16Array(2 ** groupBits * copies));
    for (let group = 0; placed !== undefined && group < table.groups; group++) {
      for (const [column, node] of placed(group).slice(0, copies).entries()) table.set(group, column, node);
    }
    return table;
  }

  /** The nodes of a group in the order of the columns, nobody included. */
  row(group: number): NodeId[] {
    return [...this.#slots.subarray(group * this.copies, (group + 1) * this.copies)] as NodeId[];
  }

  set(group: number, column: number, node: NodeId | typeof NOBODY): void {
    this.#slots[group * this.copies + column] = node;
  }

  publish(): PublishedTable {
    return { groupBits: Math.log2(this.groups), copies: this.copies, rows: encode(this.#slots) };
  }
}

/**
 * Answers from the table of a topology. What it cannot tell (slots of nodes without weight, more copies than columns, more
 * groups than rows) follows the flat rendezvous order, so that a node that fails between two publications has a successor.
 *
 * @param rule  keeps domains apart where the table does not tell
 */
export function placerOfTable(topology: Topology, rule?: DomainRule): Placer {
  const live = new Set(placeableNodes(topology).map((node) => node.id));
  const table = topology.table === undefined ? undefined : SlotTable.read(topology.table);
  return byRank(
    topology,
    (group, rank) => {
      if (table === undefined || group >= table.groups) return undefined;
      return table.row(group).filter((node) => live.has(node))[rank];
    },
    rule,
  );
}
