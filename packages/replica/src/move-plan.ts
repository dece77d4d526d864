import { type Clock, type GroupKey, groupNumber, type NodeId, type Revision } from '@webdfs/base';
import { allGroups, type GroupView, type LocalMap, type MapView } from '@webdfs/cluster';
import { type Parcel, planRescale, type Transfer } from '@webdfs/rescale';
import { lacking } from './learner-needs.ts';

/** Plans are made so far apart at least, milliseconds: what one change of the map after the other asks for, comes together. */
const AGAIN_MS = 2_000;
/** All nodes are taken to be alike: what they can do is theirs to know, and each keeps to its own limits. */
const ALIKE = { network: 1, read: 1, write: 1 };
const NOTHING: readonly Transfer[] = [];

/** What the plan says of one copy. */
export interface Advice {
  /** The nodes in sync that it may be read from, the one planned first. */
  readonly sources: readonly NodeId[];
  /** When its turn is: those with fewer copies come first, then 0 at the start of the plan and 1 at its end. */
  readonly turn: number;
  /** How many other nodes are to get it before. */
  readonly depth: number;
}

/**
 * Groups that lack a node, and what the plan is made of. A group that lacks copies comes before those that only move: a copy on a node that
 * leaves is as good as any.
 */
export function parcelsOf(view: MapView): Parcel[] {
  const parcels: Parcel[] = [];
  const isLive = (node: NodeId): boolean => view.live(node) !== undefined;
  for (const key of allGroups(view.map)) {
    const group = view.group(key);
    const receivers = lacking(group).filter(isLive);
    if (receivers.length === 0) continue;
    const holders = group.inSync.filter(isLive);
    if (holders.length === 0) continue;
    const stay = holders.filter((node) => group.goal.includes(node)).length;
    const safeCopies = holders.length < group.copies ? holders.length : group.copies + stay;
    parcels.push({ id: groupNumber(key), bytes: 1, holders, receivers, safeCopies });
  }
  return parcels;
}

/**
 * Who reads what from whom, and what comes first, while groups move or copies are made anew: the plan of the rescale room, made by every
 * node for itself from the map. All groups count alike: hashing makes them so, and nobody has to be asked. It is advice: a copy that
 * is not in it is read from any node in sync.
 *
 * It holds until another target, or other nodes that run, make another; groups that are done meanwhile leave the rest as it was.
 */
export class MovePlan {
  readonly #clock: Clock;
  readonly #map: Pick<LocalMap, 'view'>;
  #transfers: ReadonlyMap<number, readonly Transfer[]> = new Map();
  #madeAt = -Infinity;
  #madeOf: { readonly mapRevision: Revision; readonly live: string } | undefined;
  /** A copy was asked for that it does not know. */
  #isIncomplete = false;

  constructor({ clock, map }: { readonly clock: Clock; readonly map: Pick<LocalMap, 'view'> }) {
    this.#clock = clock;
    this.#map = map;
  }

  /** Copies that are planned. */
  get copies(): number {
    let count = 0;
    for (const transfers of this.#transfers.values()) count += transfers.length;
    return count;
  }

  advice(key: GroupKey, receiver: NodeId): Advice {
    const view = this.#map.view;
    this.#makeAgain(view);
    const group = view.group(key);
    const planned = this.#transfers.get(groupNumber(key)) ?? NOTHING;
    const own = planned.find(({ to }) => to === receiver);
    if (own === undefined) this.#isIncomplete = true;
    const urgency = Math.min(group.inSync.length, group.copies);
    const sources = sourcesOf(key, group, receiver, own ?? planned[0]);
    return { sources, turn: urgency + (own?.key ?? 1) * 0.999, depth: own?.depth ?? 0 };
  }

  #makeAgain(view: MapView): void {
    const now = this.#clock.monotonic();
    if (now < this.#madeAt + AGAIN_MS) return;
    const live = view.nodes().filter((node) => view.live(node) !== undefined);
    const madeOf = { mapRevision: view.mapRevision, live: live.join() };
    const isSame = this.#madeOf?.mapRevision === madeOf.mapRevision && this.#madeOf.live === madeOf.live;
    if (isSame && !this.#isIncomplete) return;
    this.#madeAt = now;
    this.#madeOf = madeOf;
    this.#isIncomplete = false;
    this.#transfers = Map.groupBy(planRescale(parcelsOf(view), () => ALIKE).transfers, ({ parcel }) => parcel);
  }
}

/** Those in sync, the planned one first, the others in an order that differs from group to group. */
function sourcesOf(key: GroupKey, { inSync }: GroupView, receiver: NodeId, planned: Transfer | undefined): NodeId[] {
  const others = inSync.filter((node) => node !== receiver);
  const first = others.length === 0 ? 0 : key.group % others.length;
  const spread = [...others.slice(first), ...others.slice(0, first)];
  const from = planned?.from;
  if (from === undefined || !spread.includes(from)) return spread;
  return [from, ...spread.filter((node) => node !== from)];
}
