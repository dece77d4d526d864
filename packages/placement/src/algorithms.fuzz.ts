import { algorithmOf } from './algorithms.ts';
import { testPlacement } from './conformance.ts';
import { ALGORITHMS } from './topology.ts';

/**
 * Every promise of every algorithm on many more topologies, with 16 384 groups each:
 * `node --conditions=webdfs:source --test packages/placement/src/algorithms.fuzz.ts`. Some minutes.
 */
for (const name of ALGORITHMS) {
  testPlacement(name, algorithmOf({ algorithm: name, version: 1 }), { topologies: 40, groupBits: 14 });
}
