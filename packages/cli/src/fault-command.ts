import { spawn } from 'node:child_process';
import { sleep, systemClock } from '@webdfs/base';

export interface FaultRun {
  readonly round: number;
  readonly startedMs: number;
  readonly exitCode: number | null;
}

/**
 * Runs a command of the user's again and again until the signal aborts: with the shell, one run at a time, `everyMs` between
 * the end of one and the next. `WEBDFS_CHECK_ROUND` tells it which run it is, from 1 on.
 */
export async function runFaults(
  command: string,
  options: {
    readonly everyMs: number;
    readonly signal: AbortSignal;
    readonly environment: Readonly<Record<string, string | undefined>>;
    /** A line that it printed. */
    readonly onLine: (line: string) => void;
  },
): Promise<FaultRun[]> {
  const { everyMs, signal, environment, onLine } = options;
  const began = systemClock.monotonic();
  const runs: FaultRun[] = [];
  for (let round = 1; !signal.aborted; round++) {
    await sleep(systemClock, everyMs, signal).catch(() => undefined);
    if (signal.aborted) break;
    const startedMs = systemClock.monotonic() - began;
    runs.push({
      round,
      startedMs,
      exitCode: await once(command, { ...environment, WEBDFS_CHECK_ROUND: `${round}` }, onLine),
    });
  }
  return runs;
}

/** A run is waited for: a fault that is half undone would be worse than a check that takes longer. */
function once(
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
  onLine: (line: string) => void,
): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'], env: environment });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        for (const line of text.split('\n')) if (line !== '') onLine(line);
      });
    }
    child.on('error', reject);
    child.on('close', resolve);
  });
}
