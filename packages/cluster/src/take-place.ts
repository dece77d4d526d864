import { type Clock, codeOf, type Log, messageOf, type NodeId, type Random, sleep, WebdfsError } from '@webdfs/base';
import { createCluster } from './create-cluster.ts';
import { foundedOf, type Joining, parseFounding } from './founding.ts';
import { FOUNDING_KEY, joinKey } from './keys.ts';
import { MapSnapshot } from './map-view.ts';
import type { Lease, MapContents, MapStore } from './map-store.ts';

export interface PlaceOptions {
  readonly store: MapStore;
  /** The cluster's name. */
  readonly name: string;
  /** Id of the data folder that asks. */
  readonly storeId: string;
  /** The place of this node, whatever folder had it before: its content is learned from the others. */
  readonly node?: NodeId;
  readonly joining: Joining;
  /** Name of the secret that this node knows. */
  readonly secret: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const LOOK_MS = 500;
const LEASE_MS = 10_000;

/**
 * A node's place in the cluster: that which its data folder has, or gets. Waits as long as the cluster is not made, or
 * nobody has added this folder to it; makes the cluster when enough nodes have announced themselves.
 *
 * @throws NOT_FOUND if there is no such cluster and none is to be made, ACCESS_DENIED for another secret than the cluster's,
 *   BAD_CONFIG for a place that the cluster does not have, CANCELLED by the signal
 */
export async function takePlace(options: PlaceOptions): Promise<NodeId> {
  const { store, clock, log, signal } = options;
  const lease: { held: Lease | undefined } = { held: undefined };
  let told = '';
  try {
    while (!signal.aborted) {
      try {
        const place = await look(options, lease);
        if (typeof place === 'number') return place;
        if (place !== told) log.warn('node.waits', { for: place, folder: options.storeId });
        told = place;
      } catch (error) {
        if (!isPassing(error)) throw error;
        log.warn('node.waits', { for: messageOf(error) });
      }
      await sleep(clock, LOOK_MS, signal).catch(() => undefined);
    }
  } finally {
    await endQuietly(store, options.storeId, lease.held);
  }
  throw new WebdfsError('CANCELLED', 'told to stop while waiting for a place in the cluster');
}

function isPassing(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'UNAVAILABLE' || code === 'CONFLICT' || code === 'ALREADY_EXISTS' || code === 'BUSY';
}

/** One look at the store: the place, or what is waited for. */
async function look(options: PlaceOptions, lease: { held: Lease | undefined }): Promise<NodeId | string> {
  const { store, name, storeId, random } = options;
  const contents = await store.read();
  const view = MapSnapshot.of(contents);
  if (view.founded) {
    // a node that was away while the token was changed comes back with the one it has: its links are another matter
    const isKnown = view.nodes().some((each) => view.disk(each)?.id === options.storeId);
    if (!isKnown) checkSecret(view.map.secret, options);
    const place = placeIn(view, options);
    if (place !== undefined) return place;
    await announce(options, contents, lease);
    return `"webdfs cluster add": the cluster has no place for this folder`;
  }
  const text = contents.entries.find(({ key }) => key === FOUNDING_KEY)?.value;
  if (text === undefined) {
    throw new WebdfsError('NOT_FOUND', `there is no cluster ${name}: make one with "webdfs cluster init"`);
  }
  const founding = parseFounding(text);
  checkSecret(founding.secret, options);
  await announce(options, contents, lease);
  const founded = foundedOf(name, await store.read());
  if (founded === undefined) return `${founding.nodes} nodes to ask for a place`;
  // one of them makes it, so that they do not hinder each other; should it die, its announcement does too
  if (founded.nodes[0]?.disk !== storeId) return 'the cluster to be made';
  await createCluster(store, { ...founded, random });
  options.log.info('cluster.made', { name, nodes: founded.nodes.length, by: storeId });
  return 'the cluster that was just made';
}

function checkSecret(known: string | undefined, { secret, name }: PlaceOptions): void {
  if (known === undefined || known === secret) return;
  throw new WebdfsError('ACCESS_DENIED', `cluster ${name} was made with another token: see "webdfs cluster token"`);
}

function placeIn(view: MapSnapshot, { storeId, node }: PlaceOptions): NodeId | undefined {
  const own = view.nodes().find((each) => view.disk(each)?.id === storeId);
  if (own !== undefined && node !== undefined && own !== node) {
    throw new WebdfsError('BAD_CONFIG', `this folder is node ${own}'s, not node ${node}'s`);
  }
  if (own !== undefined || node === undefined) return own;
  if (view.nodes().includes(node)) return node;
  throw new WebdfsError('BAD_CONFIG', `the cluster has no node ${node}, but ${view.nodes().join(', ')}`);
}

/** Keeps the announcement there, and its lease alive. */
async function announce(
  { store, storeId, joining }: PlaceOptions,
  { entries }: MapContents,
  lease: { held: Lease | undefined },
): Promise<void> {
  const key = joinKey(storeId);
  if (lease.held !== undefined && entries.some((entry) => entry.key === key)) {
    await lease.held.renew().catch((error: unknown) => {
      if (codeOf(error) !== 'NOT_FOUND') throw error;
      lease.held = undefined;
    });
    return;
  }
  lease.held = await store.lease(LEASE_MS);
  const value = JSON.stringify(joining);
  await store.transact({ compare: [], write: [{ type: 'put', key, value, lease: lease.held.id }] });
}

async function endQuietly(store: MapStore, storeId: string, lease: Lease | undefined): Promise<void> {
  if (lease === undefined) return;
  try {
    await store.transact({ compare: [], write: [{ type: 'delete', key: joinKey(storeId) }] });
    await lease.end();
  } catch (error) {
    // it goes with its lease, a few seconds later
    if (codeOf(error) === undefined) throw error;
  }
}
