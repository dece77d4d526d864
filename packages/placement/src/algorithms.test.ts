import { algorithmOf } from './algorithms.ts';
import { testPlacement } from './conformance.ts';
import { ALGORITHMS } from './topology.ts';

for (const name of ALGORITHMS) testPlacement(name, algorithmOf({ algorithm: name, version: 1 }));
