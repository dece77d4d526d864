import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { GroupId } from './ids.ts';
import { place } from './place.ts';
import { compilePlacement } from './placement-table.ts';
import { ALGORITHMS, type Topology } from './topology.ts';

interface Golden {
  readonly maps: readonly {
    readonly topology: Topology;
    /** The first groups, for readers. */
    readonly lists: readonly (readonly number[])[];
    /** All 1 024 groups, four copies: 16 bits for each node id, little-endian, in base64. */
    readonly rows: string;
  }[];
}

const GROUP_BITS = 10;
const COPIES = 4;

// The files were written once, by scripts/golden-placement.ts. They are never regenerated: data lies where they say.
for (const algorithm of ALGORITHMS) {
  test(`${algorithm} version 1 places as it always has`, () => {
    const path = new URL(`./golden/${algorithm}-v1.json`, import.meta.url);
    const golden = JSON.parse(readFileSync(path, 'utf8')) as Golden;
    assert.ok(golden.maps.length >= 2);
    for (const { topology, lists, rows } of golden.maps) {
      assert.ok(lists.length >= 32);
      for (const [group, list] of lists.entries()) {
        assert.deepEqual(place(topology, group as GroupId, list.length), list, `group ${group}`);
      }
      const frozen = Buffer.from(rows, 'base64');
      assert.equal(frozen.length, 2 ** GROUP_BITS * COPIES * 2);
      const table = compilePlacement(topology, GROUP_BITS, COPIES);
      for (let group = 0; group < table.groupCount; group++) {
        const list = Array.from({ length: COPIES }, (_, rank) => frozen.readUInt16LE((group * COPIES + rank) * 2));
        assert.deepEqual(table.members(group as GroupId), list, `group ${group}`);
      }
    }
  });
}
