import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chartConfig } from './chart-config.ts';
import { drawCharts } from './page-script.ts';
import { STYLE } from './page-style.ts';
import { cellText, checkTable, type Report, type ReportSection, type ReportTable } from './report.ts';

/** Titles that are not broken: names with hyphens would be. */
const SHORT_TITLE = 18;

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** The chart library as one script, without the pointer to its source map. */
function librarySource(): string {
  const script = new URL('chart.umd.min.js', import.meta.resolve('chart.js'));
  return readFileSync(script, 'utf8').replace(/\n?\/\/# sourceMappingURL=.*\s*$/, '');
}

function tableHtml(table: ReportTable): string {
  const head = table.columns.map(({ kind, title }) => {
    const length = title.length <= SHORT_TITLE ? ' short' : '';
    return `<th class="${kind}${length}">${escape(title)}</th>`;
  });
  const rows = table.rows.map((row) => {
    const cells = table.columns.map((column, i) => {
      const text = cellText(row[i] ?? null, column, '\u{202f}');
      const verdict = column.kind === 'verdict' ? ` ${text.split(/[ ,]/, 1)[0]!.toLowerCase()}` : '';
      return `<td class="${column.kind}${escape(verdict)}">${escape(text)}</td>`;
    });
    return `<tr>${cells.join('')}</tr>`;
  });
  return [
    '<div class="scroll"><table>',
    `<caption>${escape(table.title)}</caption>`,
    `<thead><tr>${head.join('')}</tr></thead>`,
    `<tbody>${rows.join('\n')}</tbody>`,
    '</table></div>',
  ].join('\n');
}

function sectionHtml(section: ReportSection): string {
  const charts = section.charts.map(
    (chart) =>
      `<figure><figcaption>${escape(chart.title)}</figcaption><div class="chart">` +
      `<canvas id="${escape(`${section.id}-${chart.id}`)}" role="img" aria-label="${escape(chart.title)}"></canvas></div></figure>`,
  );
  return [
    `<section id="${escape(section.id)}">`,
    `<h2>${escape(section.title)}</h2>`,
    ...section.prose.map((paragraph) => `<p>${escape(paragraph)}</p>`),
    ...charts,
    ...section.tables.map(tableHtml),
    '</section>',
  ].join('\n');
}

function environmentHtml(report: Report): string {
  const { command, seed, node, cpu, cores, startedAt } = report.environment;
  const facts: [string, string][] = [
    ['command', command],
    ...(seed === undefined ? [] : [['seed', String(seed)] satisfies [string, string]]),
    ['machine', `${cpu}, ${cores} cores, Node.js ${node}`],
    ['started', startedAt],
  ];
  return `<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${escape(value)}</dd>`).join('')}</dl>`;
}

/** Folded while all pass: they are many, and the figures are what one comes for. */
function checksHtml({ checks }: Report): string {
  const passed = checks.filter((check) => check.pass).length;
  const open = passed === checks.length ? '' : ' open';
  const summary = `<summary>Checks: ${passed} of ${checks.length} pass</summary>`;
  return `<details${open}>${summary}${tableHtml(checkTable(checks))}</details>`;
}

function sourceHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/**
 * The report as one HTML file that needs nothing else: style, charts and their library are inside, and its own policy forbids
 * the browser to fetch anything or to run another script. Follows the reader's light or dark.
 */
export function reportHtml(report: Report): string {
  const charts = report.sections.flatMap((section) =>
    section.charts.map((chart) => [`${section.id}-${chart.id}`, chartConfig(chart)] as const),
  );
  const scripts = charts.length === 0 ? [] : [librarySource(), `(${String(drawCharts)})(globalThis);`];
  const policy = `default-src 'none'; style-src ${sourceHash(STYLE)}; script-src ${scripts.map(sourceHash).join(' ') || "'none'"}`;
  // a "<" inside JSON could end the element that holds it
  const data = JSON.stringify(Object.fromEntries(charts)).replaceAll('<', String.raw`\u003c`);
  const links = report.sections.map((section) => `<a href="#${escape(section.id)}">${escape(section.title)}</a>`);
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${escape(policy)}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escape(report.title)}</title>`,
    `<style>${STYLE}</style>`,
    '</head>',
    '<body>',
    `<h1>${escape(report.title)}</h1>`,
    ...(report.invalid === undefined ? [] : [`<p class="fail">The run is not valid: ${escape(report.invalid)}</p>`]),
    ...report.summary.map((paragraph) => `<p class="summary">${escape(paragraph)}</p>`),
    environmentHtml(report),
    ...(report.checks.length === 0 ? [] : [checksHtml(report)]),
    `<nav>${links.join('')}</nav>`,
    ...report.sections.map(sectionHtml),
    `<script type="application/json" id="charts">${data}</script>`,
    ...scripts.map((script) => `<script>${script}</script>`),
    '</body>',
    '</html>',
    '',
  ].join('\n');
}
