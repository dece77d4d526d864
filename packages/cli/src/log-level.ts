import { type Log, type LogFields, type LogLevel, makeLog, systemClock } from '@webdfs/base';
import { UsageError } from './command.ts';
import type { Terminal } from './terminal.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly LogLevel[];

/** `WEBDFS_LOG`; by default only what somebody should look at. */
function logLevelOf(environment: Readonly<Record<string, string | undefined>>): LogLevel {
  const name = environment['WEBDFS_LOG'] ?? 'warn';
  const level = LEVELS.find((candidate) => candidate === name);
  if (level === undefined) throw new UsageError(`WEBDFS_LOG is one of ${LEVELS.join(', ')}, got ${name}`);
  return level;
}

/** A log on standard error, as loud as `WEBDFS_LOG` says. */
export function stderrLog(terminal: Terminal, fields: LogFields): Log {
  return makeLog({
    write: (line) => terminal.errors.write(`${line}\n`),
    now: () => systemClock.now(),
    least: logLevelOf(terminal.environment),
    fields,
  });
}
