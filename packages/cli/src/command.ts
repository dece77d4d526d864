import { parseArgs } from 'node:util';
import { codeOf, type ErrorCode, messageOf } from '@webdfs/base';
import type { Terminal } from './terminal.ts';

/** Exit codes; docs/guide/command-line.md explains each to its reader. */
export const EXIT = {
  OK: 0,
  FAILED: 1,
  USAGE: 2,
  NOT_FOUND: 3,
  DENIED: 4,
  UNREACHABLE: 5,
  OLD_NODE: 78,
  INTERRUPTED: 130,
} as const;

export interface Arguments {
  readonly positionals: readonly string[];
  text(name: string): string | undefined;
  /** All values of an option that may be repeated. */
  texts(name: string): string[];
  flag(name: string): boolean;
  /** @throws UsageError if given and not a whole number within the bounds */
  count(name: string, fallback: number, bounds: { least: number; most: number }): number;
}

export interface Option {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** What stands for the value in the help, such as `FOLDER`; of options of type `string`. */
  readonly value?: string;
  /** One line for the help. */
  readonly about: string;
}

export interface Command {
  /** One word, or two for one of a family: `bench object`. */
  readonly name: string;
  /** The line behind `webdfs`, such as `put FILE s3://BUCKET/KEY`. */
  readonly usage: string;
  readonly summary: string;
  readonly details?: string;
  readonly options: Readonly<Record<string, Option>>;
  /** Resolves to the exit code. */
  run(args: Arguments, terminal: Terminal): Promise<number>;
}

/** The words on the command line are wrong. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

const GENERAL_OPTIONS = {
  json: { type: 'boolean', about: 'answer in JSON, one value a line; errors too, on standard error' },
  help: { type: 'boolean', short: 'h', about: 'this' },
} as const satisfies Command['options'];

export function parseArguments(command: Command, words: readonly string[]): Arguments {
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({
      args: [...words],
      options: { ...command.options, ...GENERAL_OPTIONS },
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
  const { values, positionals } = parsed;
  return {
    positionals,
    text(name) {
      const value = values[name];
      return typeof value === 'string' ? value : undefined;
    },
    texts(name) {
      const value = values[name];
      return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
    },
    flag: (name) => values[name] === true,
    count(name, fallback, bounds) {
      const value = values[name];
      if (value === undefined) return fallback;
      const number = Number(value);
      if (typeof value !== 'string' || !Number.isInteger(number) || number < bounds.least || number > bounds.most) {
        throw new UsageError(
          `--${name} takes a whole number from ${bounds.least} to ${bounds.most}, got ${String(value)}`,
        );
      }
      return number;
    },
  };
}

export function helpOf(command: Command): string {
  const options = Object.entries<Option>({ ...command.options, ...GENERAL_OPTIONS }).map(([name, option]) => {
    const short = option.short === undefined ? '' : `-${option.short}, `;
    return { words: `${short}--${name}${option.value === undefined ? '' : ` ${option.value}`}`, about: option.about };
  });
  const width = Math.max(...options.map(({ words }) => words.length));
  return [
    `webdfs ${command.usage}`,
    '',
    command.summary,
    ...(command.details === undefined ? [] : ['', command.details]),
    '',
    'Options:',
    ...options.map(({ words, about }) => `  ${words.padEnd(width)}  ${about}`),
    '',
  ].join('\n');
}

const BY_CODE: Partial<Record<ErrorCode, number>> = {
  INVALID: EXIT.USAGE,
  NOT_FOUND: EXIT.NOT_FOUND,
  ACCESS_DENIED: EXIT.DENIED,
  UNAVAILABLE: EXIT.UNREACHABLE,
  PEER_LOST: EXIT.UNREACHABLE,
  TIMEOUT: EXIT.UNREACHABLE,
  BUSY: EXIT.UNREACHABLE,
  NO_QUORUM: EXIT.UNREACHABLE,
};

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.USAGE;
  const code = codeOf(error);
  return (code === undefined ? undefined : BY_CODE[code]) ?? EXIT.FAILED;
}
