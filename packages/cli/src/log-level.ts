import type { LogLevel } from '@webdfs/base';
import { UsageError } from './command.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly LogLevel[];

/** `WEBDFS_LOG`; by default only what somebody should look at. */
export function logLevelOf(environment: Readonly<Record<string, string | undefined>>): LogLevel {
  const name = environment['WEBDFS_LOG'] ?? 'warn';
  const level = LEVELS.find((candidate) => candidate === name);
  if (level === undefined) throw new UsageError(`WEBDFS_LOG is one of ${LEVELS.join(', ')}, got ${name}`);
  return level;
}
