import { exitCodeOfReport, type Report, reportText, writeReport } from '@webdfs/bench';
import type { Arguments, Option } from '../../command.ts';
import { printJson, printLine, type Terminal } from '../../terminal.ts';

/** The option that says where `runReport` writes. @param folder  where it goes without */
export function outOption(folder: string): Option {
  return { type: 'string', value: 'FOLDER', about: `where the report is written; ${folder} if left out` };
}

/**
 * Runs a benchmark that ends with a report, tells a terminal what is under way, prints the report and writes its files.
 *
 * @param folder  where they go unless `--out` says otherwise
 * @returns the exit code
 */
export async function runReport(
  args: Arguments,
  terminal: Terminal,
  benchmark: { folder: string; run: (onProgress: (what: string) => void) => Promise<Report> },
): Promise<number> {
  const { errors } = terminal;
  const live = errors.isTTY === true;
  const report = await benchmark.run((what) => {
    if (live) errors.write(`\r\u{1b}[K${what} …`);
  });
  if (live) errors.write('\r\u{1b}[K');
  const files = await writeReport(args.text('out') ?? benchmark.folder, report);
  if (terminal.json) printJson(terminal, report);
  else printLine(terminal, `${reportText(report)}\n\nwritten: ${files[0]} and ${files.length - 1} more`);
  return exitCodeOfReport(report);
}
