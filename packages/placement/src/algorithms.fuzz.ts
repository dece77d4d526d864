import { algorithmOf } from './algorithms.ts';
import { testPlacement } from './conformance.ts';
import { ALGORITHMS } from './topology.ts';

/**
 * Every promise of every algorithm, with 16 384 groups of each topology:
 * `node --test packages/placement/src/algorithms.fuzz.ts`. Some minutes.
 */
for (const name of ALGORITHMS) {
  testPlacement(name, algorithmOf({ algorithm: name, version: 1 }), { topologies: 12, groupBits: 14 });
}
