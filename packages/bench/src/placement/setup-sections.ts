import type { NodeId } from '@webdfs/base';
import { UNIT_WEIGHT } from '@webdfs/placement';
import {
  type Cell,
  numberColumn,
  type ReportChart,
  type ReportSection,
  type ReportTable,
  textColumn,
} from '../report/report.ts';
import { nodesOf, totalWeight } from './layout.ts';
import type { MoveResult, SetupResult, SetupResults } from './setup-results.ts';

/** Beyond so many nodes, sub-clusters are shown instead. */
const MAX_NODES_SHOWN = 40;

/** What stands for a row of loads: a node, or a sub-cluster of a large cluster. */
interface Place {
  readonly name: string;
  readonly nodes: readonly NodeId[];
  readonly weight: number;
}

function placesOf({ setup }: SetupResults): Place[] {
  const nodes = nodesOf(setup.subclusters);
  if (nodes.length <= MAX_NODES_SHOWN) {
    return nodes.map((node) => ({ name: String(node.id), nodes: [node.id], weight: node.weight }));
  }
  return setup.subclusters.map(({ id, nodes }) => ({
    name: `sub-cluster ${id}`,
    nodes: nodes.map((node) => node.id),
    weight: nodes.reduce((sum, node) => sum + node.weight, 0),
  }));
}

function refusals({ refused }: SetupResults): string[] {
  return refused.map(({ name, reason }) => `${name} is not here: ${reason}.`);
}

function seedProse({ seeds, setup }: SetupResults): string {
  const groups = `${setup.groupCount.toLocaleString('en')} groups`;
  return seeds.length === 1 ? `${groups}, one seed.` : `${groups}; means over ${seeds.length} seeds.`;
}

function balanceTable(results: SetupResults): ReportTable {
  const weights = results.results[0]?.bias.map(([weight]) => weight) ?? [];
  return {
    id: 'balance',
    title: 'Load against weight',
    columns: [
      textColumn('placement'),
      numberColumn('chi-square', 1),
      numberColumn('fullest / target', 3),
      numberColumn('emptiest / target', 3),
      numberColumn('std. deviation, %', 2),
      ...weights.map((weight) => numberColumn(`bias at weight ${weight / UNIT_WEIGHT}`, 3)),
      numberColumn('two copies in one rack, %', 1),
    ],
    rows: results.results.map((result) => [
      result.name,
      result.chiSquare.mean,
      result.largest.mean,
      result.smallest.mean,
      result.deviation.mean * 100,
      ...result.bias.map(([, bias]) => bias.mean),
      result.sharedRacks.mean * 100,
    ]),
  };
}

function loadOf(result: SetupResult, place: Place): number {
  return place.nodes.reduce((sum, node) => sum + (result.loads.get(node) ?? 0), 0);
}

function targetOf(results: SetupResults, place: Place): number {
  const { setup } = results;
  return (setup.groupCount * setup.copies * place.weight) / totalWeight(setup.subclusters);
}

function loadTable(results: SetupResults, places: readonly Place[]): ReportTable {
  return {
    id: 'loads',
    title: 'Copies held',
    columns: [
      textColumn('node'),
      numberColumn('weight', 2),
      numberColumn('target', 1),
      ...results.results.map((result) => numberColumn(result.name)),
    ],
    rows: places.map((place) => [
      place.name,
      place.weight / UNIT_WEIGHT,
      targetOf(results, place),
      ...results.results.map((result) => loadOf(result, place)),
    ]),
  };
}

function loadChart(results: SetupResults, places: readonly Place[]): ReportChart {
  return {
    id: 'loads',
    title: 'Copies held by each node',
    kind: 'bar',
    x: { title: 'node', scale: 'names' },
    y: { title: 'copies', scale: 'linear' },
    series: [
      ...results.results.map((result) => ({
        name: result.name,
        points: places.map((place) => [place.name, loadOf(result, place)] as const),
      })),
      {
        name: 'target by weight',
        reference: true,
        points: places.map((place) => [place.name, targetOf(results, place)] as const),
      },
    ],
  };
}

/** How evenly copies are spread. */
export function distributionSection(results: SetupResults): ReportSection {
  const places = placesOf(results);
  return {
    id: `${results.setup.id}-distribution`,
    title: `${results.setup.title}: distribution`,
    prose: [
      ...results.setup.prose,
      `${seedProse(results)} Chi-square has ${nodesOf(results.setup.subclusters).length - 1} degrees of freedom; bias is what remains however many ` +
        'groups there are.',
      ...refusals(results),
    ],
    charts: [loadChart(results, places)],
    tables: [balanceTable(results), loadTable(results, places)],
  };
}

/** A survivor's part in what the failed node held, relative to its weight; the mean of a sub-cluster's nodes. */
function partOf(result: SetupResult, failed: NodeId, place: Place): number {
  const parts = place.nodes.flatMap((node) => result.partners.get(failed)?.get(node) ?? []);
  return parts.reduce((sum, value) => sum + value, 0) / Math.max(1, parts.length);
}

function survivorsOf(results: SetupResults, failed: NodeId): Place[] {
  return placesOf(results).filter(
    (place) => place.weight > 0 && !(place.nodes.length === 1 && place.nodes[0] === failed),
  );
}

function partnerTable(results: SetupResults, failed: NodeId): ReportTable {
  return {
    id: `partners-${failed}`,
    title: `Part of each survivor of node ${failed}`,
    columns: [textColumn('survivor'), ...results.results.map((result) => numberColumn(result.name, 2))],
    rows: survivorsOf(results, failed).map((place) => [
      place.name,
      ...results.results.map((result) => partOf(result, failed, place)),
    ]),
  };
}

function partnerChart(results: SetupResults, failed: NodeId): ReportChart {
  const survivors = survivorsOf(results, failed);
  return {
    id: `partners-${failed}`,
    title: `Who serves the copies of failed node ${failed}`,
    kind: 'bar',
    x: { title: 'survivor', scale: 'names' },
    y: { title: 'part / part by weight', scale: 'linear' },
    series: [
      ...results.results.map((result) => ({
        name: result.name,
        points: survivors.map((place) => [place.name, partOf(result, failed, place)] as const),
      })),
      { name: 'by weight', reference: true, points: survivors.map((place) => [place.name, 1] as const) },
    ],
  };
}

/** Who holds the other copies of what a failed node held. */
export function failureSection(results: SetupResults): ReportSection {
  const { failing } = results.setup;
  return {
    id: `${results.setup.id}-failure`,
    title: `${results.setup.title}: failure of a node`,
    prose: [
      'When a node fails, the nodes that share its groups serve and repair them. 1 is a part in proportion to weight; a survivor at 0 helps nothing, ' +
        'one at 2 works twice as hard as it should. Few groups scatter these parts for every placement.',
      seedProse(results),
    ],
    charts: failing.map((node) => partnerChart(results, node)),
    tables: [
      {
        id: 'partners',
        title: 'Part of the survivors, relative to their weight',
        columns: [
          textColumn('placement'),
          ...failing.flatMap((node) => [
            numberColumn(`node ${node}: least`, 2),
            numberColumn('most', 2),
            numberColumn('without a part'),
          ]),
        ],
        rows: results.results.map((result) => [
          result.name,
          ...failing.flatMap((node) => {
            const ratios = [...result.partners.get(node)!.values()];
            return [Math.min(...ratios), Math.max(...ratios), ratios.filter((ratio) => ratio === 0).length];
          }),
        ]),
      },
      ...failing.map((node) => partnerTable(results, node)),
    ],
  };
}

function changeTable(
  results: SetupResults,
  table: { id: string; title: string; digits: number },
  cell: (move: MoveResult) => Cell,
): ReportTable {
  return {
    id: table.id,
    title: table.title,
    columns: [
      textColumn('change'),
      numberColumn('optimum'),
      ...results.results.map((result) => numberColumn(result.name, table.digits)),
    ],
    rows: results.setup.changes.map((change) => {
      const moves = results.results.map((result) => result.moves.get(change.id)!);
      const known = moves.find((move) => typeof move !== 'string');
      return [
        change.title,
        known === undefined ? null : known.optimum,
        ...moves.map((move) => (typeof move === 'string' ? null : cell(move))),
      ];
    }),
  };
}

/** Moved against the optimum; null where nothing has to move. */
function factorOf(move: MoveResult): number | null {
  return move.optimum < 0.5 ? null : move.moved.mean / move.optimum;
}

/** A placement's factors for the chart, whose axis has no 0. */
function factorPoints({ setup }: SetupResults, result: SetupResult): (readonly [string, number])[] {
  return setup.changes.flatMap((change) => {
    const move = result.moves.get(change.id)!;
    const factor = typeof move === 'string' ? null : factorOf(move);
    return factor === null || factor === 0 ? [] : [[change.title, factor] as const];
  });
}

/** What moves when the cluster changes. */
export function reorganisationSection(results: SetupResults): ReportSection {
  const { setup } = results;
  const drawn = results.results.map((result) => ({ name: result.name, points: factorPoints(results, result) }));
  const titles = new Set(drawn.flatMap(({ points }) => points.map(([title]) => title)));
  const optimum = setup.changes.filter(({ title }) => titles.has(title)).map(({ title }) => [title, 1] as const);
  return {
    id: `${setup.id}-reorganisation`,
    title: `${setup.title}: reorganisation`,
    prose: [
      'Moved is a (group, node) pair that is there after the change and was not before. The optimum is what nodes lose of their share of all copies; a ' +
        'placement that is biased before or after can stay below it.',
      'Astray are copies that left a node which is to hold no less, or came to one which is to hold no more: work for nothing. Ranks count the places of a list that hold ' +
        'another node, as RUSH_P was once measured; a list that only changes its order counts there, too.',
      seedProse(results),
    ],
    charts: [
      {
        id: 'factors',
        title: 'Moved copies as a multiple of the optimum',
        kind: 'bar',
        x: { title: 'change', scale: 'names' },
        y: { title: 'moved / optimum', scale: 'log' },
        series: [{ name: 'optimum', reference: true, points: optimum }, ...drawn],
      },
    ],
    tables: [
      changeTable(results, { id: 'factors', title: 'Moved / optimum', digits: 2 }, factorOf),
      changeTable(results, { id: 'moved', title: 'Moved copies', digits: 0 }, (move) => move.moved.mean),
      ...(results.seeds.length < 2
        ? []
        : [
            changeTable(
              results,
              { id: 'deviation', title: 'Standard deviation of moved copies over the seeds', digits: 1 },
              (move) => move.moved.deviation,
            ),
          ]),
      changeTable(results, { id: 'astray', title: 'Of these, astray', digits: 0 }, (move) => move.astray.mean),
      changeTable(results, { id: 'ranks', title: 'Changed ranks', digits: 0 }, (move) => move.ranks.mean),
    ],
  };
}
