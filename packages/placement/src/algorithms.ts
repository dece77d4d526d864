import { PlacementError } from './placement-error.ts';
import type { PlacementAlgorithm } from './algorithm.ts';
import { HDFS_RANDOM } from './hdfs-random.ts';
import { JUMP } from './jump.ts';
import { RENDEZVOUS } from './rendezvous.ts';
import { RING } from './ring.ts';
import { RUSH_P } from './rush-p.ts';
import { RUSH_R, RUSH_R_SHUFFLE } from './rush-r.ts';
import { RUSH_T } from './rush-t.ts';
import { STRAW2, STRAW2_TREE } from './straw2.ts';
import type { AlgorithmName, Topology } from './topology.ts';
import { WRD } from './wrd.ts';

const ALGORITHM: Readonly<Record<AlgorithmName, PlacementAlgorithm>> = {
  wrd: WRD,
  'rush-r': RUSH_R,
  'rush-r-shuffle': RUSH_R_SHUFFLE,
  'rush-p': RUSH_P,
  'rush-t': RUSH_T,
  straw2: STRAW2,
  'straw2-tree': STRAW2_TREE,
  rendezvous: RENDEZVOUS,
  ring: RING,
  jump: JUMP,
  'hdfs-random': HDFS_RANDOM,
};

/** @throws PlacementError BAD_CONFIG if this program does not know the topology's algorithm in that version */
export function algorithmOf(topology: Pick<Topology, 'algorithm' | 'version'>): PlacementAlgorithm {
  const algorithm = Object.hasOwn(ALGORITHM, topology.algorithm) ? ALGORITHM[topology.algorithm] : undefined;
  if (algorithm === undefined || algorithm.version !== topology.version) {
    throw new PlacementError(
      'BAD_CONFIG',
      `unknown placement algorithm ${topology.algorithm} version ${topology.version}`,
    );
  }
  return algorithm;
}
