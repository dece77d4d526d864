import { asNodeId, type Clock, type Disk, type Log, type NodeId, type Random, WebdfsError } from '@webdfs/base';
import {
  createCluster,
  EmbeddedMapOwner,
  followMap,
  type MapView,
  serveMapStore,
  SystemProcesses,
} from '@webdfs/cluster';
import type { AlgorithmName } from '@webdfs/placement';

/** The map store of a cluster on one machine, owned by its supervisor. */
export interface OwnedMap extends AsyncDisposable {
  readonly nodes: readonly NodeId[];
  /** A node's process has ended: its session ends at once. */
  ended(node: NodeId): void;
}

export interface OwnedMapOptions {
  /** The cluster's folder. */
  readonly folder: string;
  readonly nodes: number;
  readonly nodesGiven: boolean;
  readonly replicas: number;
  readonly replicasGiven: boolean;
  readonly placement: AlgorithmName;
  readonly placementGiven: boolean;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Where nodes reach the map store. */
export function mapSocketOf(folder: string): string {
  return `${folder}/map.sock`;
}

function isMissing(error: unknown): boolean {
  return error instanceof WebdfsError && error.code === 'NOT_FOUND';
}

async function makeCluster(owner: EmbeddedMapOwner, options: OwnedMapOptions): Promise<void> {
  const { nodes, replicas, placement, random } = options;
  await using store = owner.connect();
  await createCluster(store, {
    name: 'webdfs',
    // addresses are written by the nodes themselves when they register
    nodes: Array.from({ length: nodes }, (_, index) => ({ id: asNodeId(index + 1), address: '' })),
    copies: replicas,
    algorithm: placement,
    random,
  });
}

/** A start must not quietly run another cluster than was asked for. @throws BAD_CONFIG */
function checkShape(view: MapView, options: OwnedMapOptions): void {
  const refuse = (what: string, there: string | number, asked: string | number): never => {
    throw new WebdfsError(
      'BAD_CONFIG',
      `the cluster in ${options.folder} has ${what} ${there}, not ${asked}: leave the option away, or name another folder with --data`,
    );
  };
  const nodes = view.nodes().length;
  const copies = view.map.policies[0]?.copies ?? 0;
  const { algorithm } = view.map.settled;
  if (options.nodesGiven && nodes !== options.nodes) refuse('--nodes', nodes, options.nodes);
  if (options.replicasGiven && copies !== options.replicas) refuse('--replicas', copies, options.replicas);
  if (options.placementGiven && algorithm !== options.placement) refuse('--placement', algorithm, options.placement);
}

/**
 * Opens the map store in the cluster's folder, makes the cluster if there is none, and lets nodes reach it.
 *
 * @throws LOCKED if another supervisor owns it, BAD_CONFIG if the cluster there has another shape than was asked for
 */
export async function openMap(options: OwnedMapOptions): Promise<OwnedMap> {
  const { disk, folder, clock, random, log } = options;
  await using stack = new AsyncDisposableStack();
  const processes = new SystemProcesses(disk);
  const owner = stack.use(
    await EmbeddedMapOwner.open({ disk, folder: `${folder}/map`, clock, random, log, processes }),
  );
  const store = stack.use(owner.connect());
  const follow = async (): Promise<MapView> => {
    await using map = await followMap(store, clock, log);
    if (!map.view.frozen) return map.view;
    throw new WebdfsError(
      'BAD_CONFIG',
      `the map of the cluster in ${folder} was taken elsewhere: "webdfs cluster export --undo" takes it back`,
    );
  };
  let view: MapView;
  try {
    view = await follow();
  } catch (error) {
    if (!isMissing(error)) throw error;
    await makeCluster(owner, options);
    view = await follow();
  }
  checkShape(view, options);
  stack.use(await serveMapStore(owner, mapSocketOf(folder), log));
  const held = stack.move();
  return {
    nodes: view.nodes(),
    ended: (node) => void owner.endSession(node),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}
