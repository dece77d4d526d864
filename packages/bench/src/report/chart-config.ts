import type { ChartConfiguration, ChartDataset } from 'chart.js';
import type { Axis, ReportChart, Series } from './report.ts';

/** Colours that the page has, as `--series-0` and so on; further series begin again with another dash. */
export const COLOUR_COUNT = 16;
const DASHES = [[], [6, 3], [2, 3]] as const;
const POINT_STYLES = ['circle', 'rect', 'triangle', 'rectRot', 'star', 'crossRot'] as const;

type DrawnChart = ChartConfiguration<'line' | 'bar', (number | null)[] | { x: number; y: number }[], string>;
type DrawnSeries = ChartDataset<'line' | 'bar', (number | null)[] | { x: number; y: number }[]>;

/** Names of the places on an axis of names. */
function labelsOf(chart: ReportChart): string[] {
  return [...new Set(chart.series.flatMap((series) => series.points.map(([x]) => String(x))))];
}

function dataOf(series: Series, labels: readonly string[] | undefined): (number | null)[] | { x: number; y: number }[] {
  if (labels === undefined) return series.points.map(([x, y]) => ({ x: Number(x), y }));
  const byName = new Map(series.points.map(([x, y]) => [String(x), y]));
  return labels.map((label) => byName.get(label) ?? null);
}

function datasetOf(chart: ReportChart, series: Series, labels: readonly string[] | undefined): DrawnSeries {
  const place = chart.series.filter((other) => other.reference !== true).indexOf(series);
  const base = { label: series.name, data: dataOf(series, labels) };
  if (series.reference === true) {
    return {
      ...base,
      type: 'line',
      borderColor: 'ink',
      backgroundColor: 'paper',
      borderDash: [6, 4],
      borderWidth: 1.5,
      pointRadius: chart.kind === 'bar' ? 3 : 0,
      pointStyle: chart.kind === 'bar' ? 'circle' : 'line',
      order: -1,
    };
  }
  const colour = `series-${place % COLOUR_COUNT}`;
  if (chart.kind === 'bar') return { ...base, type: 'bar', backgroundColor: colour };
  return {
    ...base,
    type: 'line',
    borderColor: colour,
    backgroundColor: colour,
    borderDash: [...DASHES[Math.floor(place / COLOUR_COUNT) % DASHES.length]!],
    borderWidth: 2,
    pointRadius: 3,
    pointStyle: POINT_STYLES[place % POINT_STYLES.length]!,
  };
}

function scaleOf(axis: Axis): { type: 'linear' | 'logarithmic' | 'category'; title: { display: true; text: string } } {
  const type = axis.scale === 'names' ? 'category' : axis.scale === 'log' ? 'logarithmic' : 'linear';
  return { type, title: { display: true, text: axis.title } };
}

/**
 * A chart as Chart.js wants it, as plain data. Colours are names of the page's variables (`ink`, `series-3`), which the page
 * puts in when it draws, for light and dark.
 */
export function chartConfig(chart: ReportChart): DrawnChart {
  const labels = chart.x.scale === 'names' ? labelsOf(chart) : undefined;
  return {
    type: chart.kind,
    data: {
      ...(labels === undefined ? {} : { labels }),
      datasets: chart.series.map((series) => datasetOf(chart, series, labels)),
    },
    options: {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      interaction: { mode: 'nearest', intersect: false, axis: 'x' },
      plugins: { legend: { position: 'bottom', labels: { usePointStyle: chart.kind === 'line' } } },
      scales: {
        x: scaleOf(chart.x),
        y: { ...scaleOf(chart.y), ...(chart.y.scale === 'linear' ? { beginAtZero: true } : {}) },
      },
    },
  };
}
