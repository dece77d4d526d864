import { createRequire } from 'node:module';
import { systemClock } from '@webdfs/base';
import { EXIT } from './command.ts';
import { loadCommands } from './commands.ts';
import { runProgram } from './program.ts';

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

// waiting for a time alone does not keep a process: timers of the clock are not counted
const held = setInterval(() => undefined, 60_000);

const manifest: { version: string } = createRequire(import.meta.url)('../package.json');
const words = process.argv.slice(2);
process.exitCode = await runProgram(
  await loadCommands(words[0]),
  words,
  {
    input: process.stdin,
    output: process.stdout,
    errors: process.stderr,
    environment: process.env,
    signal: interrupt.signal,
  },
  manifest.version,
);
clearInterval(held);
