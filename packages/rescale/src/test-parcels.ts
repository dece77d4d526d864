import { asNodeId, type NodeId, type SeededRandom } from '@webdfs/base';
import type { Parcel } from './parcel.ts';
import type { Rates } from './rates.ts';

/** Work for tests: random parcels of random sizes among a few nodes; some go to several. */
export function someParcels(random: SeededRandom, shape: { parcels: number; nodes: number; bytes?: number }): Parcel[] {
  return Array.from({ length: shape.parcels }, (_, id): Parcel => {
    const nodes = Array.from({ length: shape.nodes }, (__, i) => asNodeId(i + 1));
    for (let i = nodes.length - 1; i > 0; i--) {
      const j = random.below(i + 1);
      [nodes[i], nodes[j]] = [nodes[j]!, nodes[i]!];
    }
    const holders = 1 + random.below(3);
    const receivers = 1 + random.below(2);
    return {
      id,
      bytes: shape.bytes ?? 1 + random.below(100),
      holders: nodes.slice(0, holders),
      receivers: nodes.slice(holders, holders + receivers),
      safeCopies: 1,
    };
  });
}

/** Rates that differ from node to node, by a factor of up to four. */
export function someRates(random: SeededRandom, nodes: number): (node: NodeId) => Rates {
  const rates = Array.from({ length: nodes }, (): Rates => {
    const rate = (): number => 50 * (1 + 3 * random.fraction());
    return { network: rate(), read: rate(), write: rate() };
  });
  return (node) => rates[node - 1]!;
}
