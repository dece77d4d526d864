import { compilePlacement, publishTopology, type Topology, UNIT_WEIGHT, changeTopology } from '@webdfs/placement';
import { asNodeId } from '@webdfs/base';
import { parcelsBetween, planRescale } from '@webdfs/rescale';
import { atMost, type Check } from '../report/check.ts';
import { numberColumn, type ReportSection, textColumn } from '../report/report.ts';
import type { Runner } from './runner.ts';
import { MEMORY } from './resources.ts';

const GATE = { seconds: 5, megabytes: 500 } as const;
const NODES = 100;
const GROUP_BITS = 14;
/** Parcels in a group, so that several holders share it. */
const PARTS = 4;

/** What a large plan costs: processor time, since others may use the machine, and the process's memory, all that ran before included. */
export async function planningSection(runner: Runner): Promise<{ section: ReportSection; checks: Check[] }> {
  await runner.step(`a plan for ${NODES} nodes`);
  const nodes = Array.from({ length: NODES }, (_, i) => ({ id: asNodeId(i + 1), weight: UNIT_WEIGHT, labels: {} }));
  const plain: Topology = {
    algorithm: 'wrd',
    version: 1,
    seed: runner.seeds[0]!,
    copies: 3,
    subclusters: [{ id: 1, nodes }],
  };
  const before = publishTopology(plain, { groupBits: GROUP_BITS });
  const after = changeTopology(before, [{ type: 'add-subcluster', count: NODES, weight: UNIT_WEIGHT, labels: {} }], {
    groupBits: GROUP_BITS,
  });
  const old = compilePlacement(before, GROUP_BITS, 3);
  const next = compilePlacement(after, GROUP_BITS, 3);
  for (const table of [old, next]) table.rows();

  const cpu = process.cpuUsage();
  const parcels = parcelsBetween(old, next, { bytesOf: () => 1e9, parts: PARTS });
  const plan = planRescale(parcels, () => MEMORY.rates);
  const used = process.cpuUsage(cpu);
  const seconds = (used.user + used.system) / 1e6;
  const megabytes = (process.resourceUsage().maxRSS * 1024) / 1e6;
  return {
    checks: [
      atMost(
        `plan for ${NODES} → ${2 * NODES} nodes, ${2 ** GROUP_BITS} groups: processor time`,
        seconds,
        GATE.seconds,
        's',
      ),
      atMost(
        `plan for ${NODES} → ${2 * NODES} nodes: most memory this process ever had`,
        megabytes,
        GATE.megabytes,
        'MB',
      ),
    ],
    section: {
      id: 'planning',
      title: 'What a large plan costs',
      prose: [`${NODES} nodes become ${2 * NODES}: the largest plan of such a cluster, in ${PARTS} parcels a group.`],
      charts: [],
      tables: [
        {
          id: 'planning',
          title: 'One plan',
          columns: [textColumn('figure'), numberColumn('value', 2)],
          rows: [
            ['parcels', parcels.length],
            ['transfers', plan.transfers.length],
            ['processor time, s', seconds],
            ['most memory of the process so far, MB', megabytes],
          ],
        },
      ],
    },
  };
}
