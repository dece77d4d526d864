import { existsSync, writeFileSync } from 'node:fs';
import { algorithmOf, ALGORITHMS, type AlgorithmName, place, publishTopology, type Topology } from '@webdfs/placement';
import { foundingTopology, subclusterOf } from '@webdfs/placement/conformance';

/**
 * Writes the frozen mappings of placement algorithms that have none yet. A file that exists is left alone: a mapping
 * that changed is a bug, or a new version of the algorithm with a file of its own.
 */
const GROUP_BITS = 10;
const READABLE = 32;
const COPIES = 4;

/** The founding set-up, published, with pins; and five unlike racks with a drained node. */
function topologies(algorithm: AlgorithmName): Topology[] {
  const options = { groupBits: GROUP_BITS };
  const founding = publishTopology(foundingTopology(algorithm, 0x5eed), options);
  const [from] = place(founding, 3 as never, 1);
  const unit = algorithmOf(founding).supports.fractionalWeights ? 1 : 4;
  const racks: Topology = {
    algorithm,
    version: 1,
    seed: 0xffff_ffff,
    copies: 3,
    domain: 'rack',
    subclusters: [
      subclusterOf(4, { firstId: 100, count: 4, weight: unit, labels: { rack: 'a' } }),
      subclusterOf(2, { firstId: 60_000, count: 3, weight: 2.5 * unit, labels: { rack: 'b' } }),
      subclusterOf(9, { firstId: 7, count: 1, weight: 0, labels: { rack: 'c' } }),
      subclusterOf(11, { firstId: 300, count: 6, weight: 0.75 * unit, labels: { rack: 'c' } }),
      subclusterOf(1, { firstId: 20, count: 2, weight: 4 * unit }),
    ],
  };
  const pins = [1, 2, 6, 11].map((to) => ({ group: 3 as never, from: from!, to: to as never }));
  return [{ ...founding, pins: pins.slice(0, 1) }, publishTopology(racks, options)];
}

function listsOf(topology: Topology): number[][] {
  return Array.from({ length: 2 ** GROUP_BITS }, (_, group) => place(topology, group as never, COPIES));
}

for (const algorithm of ALGORITHMS) {
  const path = new URL(`../packages/placement/src/golden/${algorithm}-v1.json`, import.meta.url);
  if (existsSync(path)) {
    console.log(`${algorithm}: exists, left alone`);
    continue;
  }
  const text = topologies(algorithm).map((topology) => {
    const lists = listsOf(topology);
    const readable = lists.slice(0, READABLE).map((list) => JSON.stringify(list));
    const rows = Buffer.from(Uint16Array.from(lists.flat()).buffer).toString('base64');
    return `{"topology":${JSON.stringify(topology)},\n"lists":[\n${readable.join(',\n')}],\n"rows":"${rows}"}`;
  });
  writeFileSync(path, `{"maps":[\n${text.join(',\n')}]}\n`);
  console.log(`${algorithm}: written`);
}
