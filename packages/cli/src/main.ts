import { createRequire } from 'node:module';
import { systemClock } from '@webdfs/base';
import { EXIT } from './command.ts';
import { mb, rb } from './commands/buckets.ts';
import { benchmarks } from './commands/bench.ts';
import { fsck } from './commands/fsck.ts';
import { get } from './commands/get.ts';
import { ls } from './commands/ls.ts';
import { node } from './commands/node.ts';
import { put } from './commands/put.ts';
import { rm } from './commands/rm.ts';
import { stat } from './commands/stat.ts';
import { status } from './commands/status.ts';
import { up } from './commands/up.ts';
import { where } from './commands/where.ts';
import { runProgram } from './program.ts';

const COMMANDS = [up, status, put, get, ls, rm, stat, where, mb, rb, fsck, ...benchmarks, node];

/** One Ctrl-C may come twice: from the terminal, and passed on by npm. A person needs longer for the second. */
const IMPATIENT_MS = 500;

const interrupt = new AbortController();
let interruptedMs = 0;
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    if (!interrupt.signal.aborted) {
      interruptedMs = systemClock.monotonic();
      interrupt.abort(new Error(name));
    } else if (systemClock.monotonic() - interruptedMs >= IMPATIENT_MS) {
      // the second one does not wait for anybody
      process.exit(EXIT.INTERRUPTED);
    }
  });
}
// a reader that went away (`webdfs ls | head`) is no error of ours
process.stdout.on('error', () => process.exit(0));

const manifest: { version: string } = createRequire(import.meta.url)('../package.json');
process.exitCode = await runProgram(
  COMMANDS,
  process.argv.slice(2),
  {
    input: process.stdin,
    output: process.stdout,
    errors: process.stderr,
    environment: process.env,
    signal: interrupt.signal,
  },
  manifest.version,
);
