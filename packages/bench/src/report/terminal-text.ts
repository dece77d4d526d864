import { cellText, checkTable, type Column, type Environment, type Report, type ReportTable } from './report.ts';

/** Paragraphs are wrapped here; tables are as wide as they are. */
const PROSE_WIDTH = 110;

function wrap(paragraph: string): string {
  const lines = [''];
  for (const word of paragraph.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && line.length + 1 + word.length > PROSE_WIDTH) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join('\n');
}

/** A table as lines of text: columns two spaces apart, numbers to the right. */
export function tableText(table: ReportTable): string {
  const cells = table.rows.map((row) => table.columns.map((column, i) => cellText(row[i] ?? null, column)));
  const widths = table.columns.map((column, i) => Math.max(column.title.length, ...cells.map((row) => row[i]!.length)));
  const pad = (text: string, column: Column, i: number): string =>
    column.kind === 'number' ? text.padStart(widths[i]!) : text.padEnd(widths[i]!);
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, i) => pad(text, table.columns[i]!, i))
      .join('  ')
      .trimEnd();
  return [line(table.columns.map((column) => column.title)), ...cells.map(line)].join('\n');
}

/** One line about machine and run. */
export function environmentText(environment: Environment): string {
  const { cpu, cores, node, startedAt, command, seed } = environment;
  const chance = seed === undefined ? '' : `; seed ${seed}`;
  return `${command}; ${cpu}, ${cores} cores, Node.js ${node}, ${startedAt}${chance}`;
}

/** The report for a terminal: everything but the charts, whose figures the tables hold too. */
export function reportText(report: Report): string {
  const blocks = [`# ${report.title}`, environmentText(report.environment), ...report.summary.map(wrap)];
  for (const section of report.sections) {
    blocks.push(`## ${section.title}`, ...section.prose.map(wrap));
    for (const table of section.tables) blocks.push(`${table.title}\n${tableText(table)}`);
  }
  if (report.invalid !== undefined) blocks.push(`The run is not valid: ${report.invalid}`);
  if (report.checks.length > 0) blocks.push(`## Checks\n\n${tableText(checkTable(report.checks))}`);
  return blocks.join('\n\n');
}
