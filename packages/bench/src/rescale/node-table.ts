import { paceOf } from '@webdfs/rescale';
import { numberColumn, type ReportTable, textColumn } from '../report/report.ts';
import type { Point } from './runner.ts';
import { nameOf } from './scenario.ts';

const GIGA = 1e9;

/** What each node of some points did in the first run: a bad plan and a slow node look different here. */
export function nodeTable(points: readonly Point[]): ReportTable {
  return {
    id: 'nodes',
    title:
      'Node by node, first run: GB, share of the time that its busiest resource was busy, when its last byte was durable',
    columns: [
      textColumn('nodes'),
      textColumn('pace'),
      numberColumn('node'),
      numberColumn('received', 2),
      numberColumn('sent', 2),
      numberColumn('read', 2),
      numberColumn('written', 2),
      numberColumn('busy, %', 1),
      textColumn('with'),
      numberColumn('end, s', 2),
    ],
    rows: points.flatMap(({ scenario, resources, runs }) => {
      const { nodes, seconds } = runs[0]!.figures;
      return Array.from(nodes, ([node, { received, sent, read, written, finishedAt }]) => {
        const usage = { receive: received, send: sent, read, write: written };
        const pace = paceOf(node, usage, resources.rates);
        return [
          nameOf(scenario),
          resources.name,
          node,
          received / GIGA,
          sent / GIGA,
          read / GIGA,
          written / GIGA,
          (pace.seconds / seconds) * 100,
          pace.resource,
          finishedAt,
        ];
      });
    }),
  };
}
