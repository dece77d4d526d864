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

interface Found {
  readonly command: Command;
  /** The words behind the command's name. */
  readonly rest: readonly string[];
}

/** The command that the first word names, or the first two of a family's; else the commands of the family, if it is one. */
function findCommand(commands: readonly Command[], words: readonly string[]): Found | readonly Command[] {
  for (const length of [1, 2]) {
    const name = words.slice(0, length).join(' ');
    const command = commands.find((candidate) => candidate.name === name);
    if (command !== undefined) return { command, rest: words.slice(length) };
  }
  return commands.filter((candidate) => candidate.name.startsWith(`${words[0]} `));
}

/** Answers a line that names no command: with help on a family, or with what is wrong. */
function withoutCommand(family: readonly Command[], words: readonly string[], terminal: Terminal): number {
  const [name, second] = words;
  if (family.length > 0 && (second === '--help' || second === '-h')) {
    terminal.output.write(overview(family));
    return EXIT.OK;
  }
  const names = family.map((command) => `"webdfs ${command.name}"`).join(', ');
  const hint = family.length === 0 ? '"webdfs help" lists them' : `there is ${names}`;
  const asked = family.length === 0 ? name : words.slice(0, 2).join(' ');
  complain(terminal, '', new UsageError(`there is no command ${asked}: ${hint}`));
  return EXIT.USAGE;
}

/** Runs one command line; resolves to its exit code. */
export async function runProgram(
  commands: readonly Command[],
  words: readonly string[],
  terminal: Omit<Terminal, 'json'>,
  version: string,
): Promise<number> {
  const full: Terminal = { ...terminal, json: words.includes('--json') };
  const answered = general(commands, words[0], full, version);
  if (answered !== undefined) return answered;
  const found = findCommand(commands, words);
  if (!('command' in found)) return withoutCommand(found, words, full);
  const { command, rest } = found;
  try {
    const args = parseArguments(command, rest);
    if (!args.flag('help')) return await command.run(args, full);
    terminal.output.write(helpOf(command));
    return EXIT.OK;
  } catch (error) {
    if (terminal.signal.aborted) return EXIT.INTERRUPTED;
    complain(full, command.name, error);
    return exitCodeOf(error);
  }
}
