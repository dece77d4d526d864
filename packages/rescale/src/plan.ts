import type { NodeId } from '@webdfs/base';
import { checkParcels, compareTurns, type Parcel, type Transfer } from './parcel.ts';
import type { RatesOf } from './rates.ts';
import { planStages } from './stages.ts';
import { turnsOf } from './turns.ts';
import { type Pace, paceOf, slowest, type Usage, usageOf } from './usage.ts';
import { WorkTable } from './work-table.ts';

/** Who sends what to whom, and in which order. Advice: it is computed from durable state, and losing it loses nothing. */
export interface RescalePlan {
  /** In the order of their turns; each receiver pulls its own in this order. */
  readonly transfers: readonly Transfer[];
  readonly usage: ReadonlyMap<NodeId, Usage>;
  /** T_plan: no execution of this plan can be faster. */
  readonly seconds: number;
  /** What sets it; undefined if there is nothing to do. */
  readonly pace: Pace | undefined;
  /** Bytes that change nodes, copies counted. */
  readonly bytes: number;
}

/**
 * Plans the copies that are to be made so that the busiest node is busy as shortly as possible, then spreads every pair's traffic
 * evenly over the whole time, so that all nodes are busy from start to end.
 *
 * @param ratesOf  what each node may use; bytes per second
 * @throws WebdfsError INVALID, LOST as `checkParcels`
 *
 * Cost: linear in the copies to be made, a few microseconds each. Sources: the order is what Gonzalez and Sahni ("Open shop
 * scheduling to minimize finish time", J. ACM 23, 1976) show to exist with length equal to the busiest node's sum.
 */
export function planRescale(parcels: readonly Parcel[], ratesOf: RatesOf): RescalePlan {
  checkParcels(parcels);
  const moving = parcels.filter(({ receivers }) => receivers.length > 0);
  const work = new WorkTable(moving, ratesOf);
  const stages = planStages(work);
  const turns = turnsOf(stages);
  const transfers = stages.flatMap(({ parcels, chains }) =>
    parcels.flatMap((parcel, i) => {
      const { id, bytes } = moving[parcel]!;
      const key = turns.get(parcel)!;
      return chains[i]!.map(({ from, to, depth }): Transfer => {
        return { parcel: id, bytes, from: work.nodes[from]!, to: work.nodes[to]!, depth, key };
      });
    }),
  );
  transfers.sort(compareTurns);
  const usage = usageOf(transfers);
  const pace = slowest(Array.from(usage, ([node, used]) => paceOf(node, used, ratesOf(node))));
  const bytes = transfers.reduce((sum, transfer) => sum + transfer.bytes, 0);
  return { transfers, usage, seconds: pace?.seconds ?? 0, pace, bytes };
}
