import type { NodeId } from '@webdfs/base';
import type { DataDistributionValidator } from './parts.ts';

/** Faults that are told one by one; more are counted. */
const MAX_FAULTS = 10;

/** Counts copies and bytes: every file on as many distinct nodes as it should, only on nodes there are, none too full. */
export const LOAD_VALIDATOR: DataDistributionValidator = {
  validate(sizes, holders, { nodes, copies, fullest: limit }) {
    const faults: string[] = [];
    const loads = new Map(nodes.map((node): [NodeId, number] => [node, 0]));
    for (const [file, bytes] of sizes.entries()) {
      const held = holders(file);
      if (held.size !== copies) faults.push(`file ${file} has ${held.size} copies instead of ${copies}`);
      for (const node of held) {
        const load = loads.get(node);
        if (load === undefined) faults.push(`file ${file} lies on node ${node}, which should hold nothing`);
        else loads.set(node, load + bytes);
      }
    }
    const total = [...loads.values()].reduce((sum, load) => sum + load, 0);
    const most = Math.max(...loads.values());
    const fullest = total === 0 ? 1 : (most * nodes.length) / total;
    if (fullest > limit) faults.push(`the fullest node holds ${fullest.toFixed(3)} of the mean, allowed are ${limit}`);
    const more = faults.length - MAX_FAULTS;
    return { fullest, faults: more > 0 ? [...faults.slice(0, MAX_FAULTS), `${more} more faults`] : faults };
  },
};
