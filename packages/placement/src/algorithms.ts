import { WebdfsError } from '@webdfs/base/errors';
import type { PlacementAlgorithm, PublishOptions } from './algorithm.ts';
import { placeableNodes } from './domains.ts';
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

/** @throws WebdfsError BAD_CONFIG if this program does not know the topology's algorithm in that version */
export function algorithmOf(topology: Topology): PlacementAlgorithm {
  const algorithm = Object.hasOwn(ALGORITHM, topology.algorithm) ? ALGORITHM[topology.algorithm] : undefined;
  if (algorithm === undefined || algorithm.version !== topology.version) {
    throw new WebdfsError(
      'BAD_CONFIG',
      `unknown placement algorithm ${topology.algorithm} version ${topology.version}`,
    );
  }
  return algorithm;
}

/**
 * The topology with what its algorithm stores in it: calibration factors, a table. To be called by whoever publishes a
 * topology, for planned changes; what an earlier algorithm stored goes.
 *
 * @throws WebdfsError BAD_CONFIG, INVALID if there are fewer nodes with weight than copies
 */
export function publishTopology(topology: Topology, options: PublishOptions): Topology {
  const algorithm = algorithmOf(topology);
  const placeable = placeableNodes(topology).length;
  if (placeable < topology.copies) {
    throw new WebdfsError(
      'INVALID',
      `${topology.copies} copies need as many nodes with weight, there are ${placeable}`,
      {
        details: { what: 'placeable-nodes', wanted: topology.copies, placeable },
      },
    );
  }
  const { factors: _, table: __, ...plain } = topology;
  return algorithm.publish?.(plain, options) ?? plain;
}
