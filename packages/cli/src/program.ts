import { messageOf } from '@webdfs/base';
import { type Command, EXIT, exitCodeOf, helpOf, parseArguments, UsageError } from './command.ts';
import { printJson, type Terminal } from './terminal.ts';

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => command.usage.length));
  return [
    'webdfs: an elastic, distributed object store that speaks S3',
    '',
    ...commands.map((command) => `  webdfs ${command.usage.padEnd(width)}  ${command.summary}`),
    '',
    '"webdfs COMMAND --help" says more. Every command takes --json.',
    '',
  ].join('\n');
}

function complain(terminal: Terminal, name: string, error: unknown): void {
  const message = messageOf(error);
  if (terminal.json) terminal.errors.write(`${JSON.stringify({ error: message, exitCode: exitCodeOf(error) })}\n`);
  else terminal.errors.write(`webdfs${name === '' ? '' : ` ${name}`}: ${message}\n`);
}

/** What is asked before any command: help and version. Undefined if it is neither. */
function general(
  commands: readonly Command[],
  name: string | undefined,
  terminal: Terminal,
  version: string,
): number | undefined {
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    terminal.output.write(overview(commands.filter((command) => command.summary !== '')));
    return name === undefined ? EXIT.USAGE : EXIT.OK;
  }
  if (name !== '--version' && name !== 'version') return undefined;
  if (terminal.json) printJson(terminal, { version, node: process.versions.node });
  else terminal.output.write(`webdfs ${version} (Node.js ${process.versions.node})\n`);
  return EXIT.OK;
}

/** Runs one command line; resolves to its exit code. */
export async function runProgram(
  commands: readonly Command[],
  words: readonly string[],
  terminal: Omit<Terminal, 'json'>,
  version: string,
): Promise<number> {
  const full: Terminal = { ...terminal, json: words.includes('--json') };
  const [name, ...rest] = words;
  const answered = general(commands, name, full, version);
  if (answered !== undefined || name === undefined) return answered ?? EXIT.USAGE;
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) {
    complain(full, '', new UsageError(`there is no command ${name}: "webdfs help" lists them`));
    return EXIT.USAGE;
  }
  try {
    const args = parseArguments(command, rest);
    if (!args.flag('help')) return await command.run(args, full);
    terminal.output.write(helpOf(command));
    return EXIT.OK;
  } catch (error) {
    if (terminal.signal.aborted) return EXIT.INTERRUPTED;
    complain(full, name, error);
    return exitCodeOf(error);
  }
}
