import type { Cell, ReportTable } from './report.ts';

function field(cell: Cell): string {
  const text = cell === null ? '' : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A table in CSV (RFC 4180): a line of titles, then numbers with all their digits. */
export function tableCsv(table: ReportTable): string {
  const lines = [table.columns.map((column) => column.title), ...table.rows];
  return lines.map((line) => `${line.map(field).join(',')}\r\n`).join('');
}
