import {
  asNodeId,
  type Clock,
  type Disk,
  type Log,
  messageOf,
  type NodeId,
  type Random,
  WebdfsError,
} from '@webdfs/base';
import {
  createCluster,
  EmbeddedMapOwner,
  type FollowedMap,
  followMap,
  type MapStore,
  type MapView,
  proposeTarget,
  type RescaleEnd,
  rescalesIn,
  serveMapStore,
  SystemProcesses,
  type Transaction,
  wantedCopies,
  withRescale,
} from '@webdfs/cluster';
import type { AlgorithmName, Topology, TopologyChange } from '@webdfs/placement';
import { changeEvenly } from '@webdfs/rescale';
import { plannedRescale } from './rescale/planned-rescale.ts';

/** The map store of a cluster on one machine, owned by its supervisor. */
export interface OwnedMap extends AsyncDisposable {
  /** All of the cluster now: those that are to come and those that are to go included. */
  nodes(): readonly NodeId[];
  /** Called when `nodes` may have changed. */
  onChange(listener: () => void): void;
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

/** The topology with as many nodes as were asked for: new ones follow the last, the last ones go. */
function resized(view: MapView, nodes: number): Topology {
  const present = view.map.target ?? view.map.settled;
  const ids = present.subclusters
    .flatMap((subcluster) => subcluster.nodes.map(({ id }) => id))
    .toSorted((a, b) => a - b);
  const newest = present.subclusters.at(-1)!.id;
  const change: TopologyChange =
    nodes > ids.length
      ? { type: 'add-nodes', subcluster: newest, count: nodes - ids.length, labels: {} }
      : { type: 'remove', nodes: { by: 'id', ids: ids.slice(nodes) } };
  return changeEvenly(present, [change], { groupBits: view.map.groupBits });
}

/** Has the cluster grow or shrink to as many nodes as were asked for. @throws BAD_CONFIG if it cannot */
async function resize(store: MapStore, map: FollowedMap, options: OwnedMapOptions): Promise<void> {
  const { view } = map;
  const { subclusters } = view.map.target ?? view.map.settled;
  const present = subclusters.reduce((sum, { nodes }) => sum + nodes.length, 0);
  if (!options.nodesGiven || options.nodes === present) return;
  let transaction: Transaction;
  try {
    const target = resized(view, options.nodes);
    const kept = rescalesIn(await store.read());
    const nowMs = options.clock.now();
    const begin = plannedRescale(view, target, {
      copiesOf: (policy) => wantedCopies(view.policy(policy)),
      // no node runs yet that could tell
      sizes: undefined,
      command: `up --nodes ${options.nodes}`,
      nowMs,
    });
    const end: RescaleEnd = { outcome: 'replaced', endedMs: nowMs, groups: 0 };
    transaction = withRescale(proposeTarget(view, target), kept, { end, begin });
  } catch (error) {
    throw new WebdfsError('BAD_CONFIG', `${present} nodes cannot become ${options.nodes}: ${messageOf(error)}`);
  }
  const { done, revision } = await store.transact(transaction);
  if (!done) throw new WebdfsError('CONFLICT', 'the cluster map was changed by another at the same time: start again');
  options.log.info('cluster resized', { from: present, to: options.nodes });
  await map.readThrough(revision);
}

/** A start must not quietly run another cluster than was asked for. @throws BAD_CONFIG */
function checkShape(view: MapView, options: OwnedMapOptions): void {
  const refuse = (what: string, there: string | number, asked: string | number): never => {
    throw new WebdfsError(
      'BAD_CONFIG',
      `the cluster in ${options.folder} has ${what} ${there}, not ${asked}: leave the option away ("webdfs cluster set-policy" and "set-placement" change it while it runs), or name another folder with --data`,
    );
  };
  const copies = view.map.policies[0]?.copies ?? 0;
  const { algorithm } = view.map.settled;
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
  const follow = async (): Promise<FollowedMap> => {
    const map = await followMap(store, clock, log);
    if (!map.view.frozen) return map;
    await map[Symbol.asyncDispose]();
    throw new WebdfsError(
      'BAD_CONFIG',
      `the map of the cluster in ${folder} was taken elsewhere: "webdfs cluster export --undo" takes it back`,
    );
  };
  let map: FollowedMap;
  try {
    map = await follow();
  } catch (error) {
    if (!isMissing(error)) throw error;
    await makeCluster(owner, options);
    map = await follow();
  }
  stack.use(map);
  checkShape(map.view, options);
  await resize(store, map, options);
  stack.use(await serveMapStore(owner, mapSocketOf(folder), log));
  const held = stack.move();
  return {
    nodes: () => map.view.nodes(),
    onChange: (listener) => void map.onChange(listener),
    ended: (node) => void owner.endSession(node),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}
