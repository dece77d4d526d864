import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { GroupId } from '@webdfs/base';
import { place } from './place.ts';
import { ALGORITHMS, type Topology } from './topology.ts';

interface Golden {
  readonly maps: readonly { readonly topology: Topology; readonly lists: readonly (readonly number[])[] }[];
}

// The files were written once, by scripts/golden-placement.ts. They are never regenerated: data lies where they say.
for (const algorithm of ALGORITHMS) {
  test(`${algorithm} version 1 places as it always has`, () => {
    const path = new URL(`./golden/${algorithm}-v1.json`, import.meta.url);
    const golden = JSON.parse(readFileSync(path, 'utf8')) as Golden;
    assert.ok(golden.maps.length >= 2);
    for (const { topology, lists } of golden.maps) {
      assert.ok(lists.length >= 32);
      for (const [group, list] of lists.entries()) {
        assert.deepEqual(place(topology, group as GroupId, list.length), list, `group ${group}`);
      }
    }
  });
}
