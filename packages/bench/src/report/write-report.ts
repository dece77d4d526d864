import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tableCsv } from './csv.ts';
import { reportHtml } from './html.ts';
import type { Report } from './report.ts';

/**
 * Writes `report.html`, `report.json`, and a CSV file per table, named for its section and itself.
 *
 * @param folder  made if it does not exist; files of the same names are replaced
 * @returns the paths written, the page first
 */
export async function writeReport(folder: string, report: Report): Promise<string[]> {
  const files: [string, string][] = [
    ['report.html', reportHtml(report)],
    ['report.json', `${JSON.stringify(report, null, 2)}\n`],
    ...report.sections.flatMap((section) =>
      section.tables.map((table): [string, string] => [`${section.id}-${table.id}.csv`, tableCsv(table)]),
    ),
  ];
  await mkdir(folder, { recursive: true });
  for (const [name, text] of files) await writeFile(join(folder, name), text);
  return files.map(([name]) => join(folder, name));
}
