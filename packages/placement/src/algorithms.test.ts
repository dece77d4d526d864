import { algorithmOf } from './algorithms.ts';
import { foundingTopology, testPlacement } from './conformance.ts';
import { ALGORITHMS } from './topology.ts';

for (const name of ALGORITHMS) testPlacement(name, algorithmOf(foundingTopology(name, 1)));
