import { WebdfsError } from '@webdfs/base';
import { isNode, LineCounter, parseDocument } from 'yaml';

/** Where an entry is: names and positions from the root. */
export type Path = readonly (string | number)[];

type Fields = Readonly<Record<string, unknown>>;

/** Copies that anchors may make of one another: a file of a few lines must not become gigabytes. */
const MAX_ALIASES = 100;

function nameOf(path: Path): string {
  const name = path.reduce<string>((text, part) => `${text}${typeof part === 'number' ? `[${part}]` : `.${part}`}`, '');
  return name === '' ? 'the whole' : name.replace(/^\./, '');
}

/**
 * The entries of a YAML (or JSON) file that a person wrote, each with the line it is on, so that every refusal says where.
 *
 * All methods throw WebdfsError INVALID; `details` has `entry` and `line`.
 */
export class FileEntries {
  readonly root: unknown;
  readonly #name: string;
  readonly #document: ReturnType<typeof parseDocument>;
  readonly #lines = new LineCounter();

  /** @param name  how the file is called in messages */
  constructor(name: string, text: string) {
    this.#name = name;
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false });
    const [error] = this.#document.errors;
    if (error !== undefined) this.#refuseAt(this.#lines.linePos(error.pos[0]).line, '', error.message);
    try {
      this.root = this.#document.toJS({ maxAliasCount: MAX_ALIASES });
    } catch (error) {
      this.#refuseAt(1, '', error instanceof Error ? error.message : String(error));
    }
  }

  #refuseAt(line: number, entry: string, what: string): never {
    const message = `${this.#name}, line ${line}: ${entry === '' ? '' : `${entry} `}${what}`;
    throw new WebdfsError('INVALID', message, { details: { entry, line } });
  }

  /** The line of an entry, or of what it would be in. */
  #lineOf(path: Path): number {
    for (let length = path.length; length >= 0; length--) {
      const found: unknown = length === 0 ? this.#document.contents : this.#document.getIn(path.slice(0, length), true);
      if (isNode(found) && found.range) return this.#lines.linePos(found.range[0]).line;
    }
    return 1;
  }

  refuse(path: Path, what: string): never {
    return this.#refuseAt(this.#lineOf(path), nameOf(path), what);
  }

  /** @param known  the names that may be there: another one is a slip that would go unseen */
  fields(value: unknown, path: Path, known: readonly string[]): Fields {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      this.refuse(path, 'is not a list of names and values');
    for (const name of Object.keys(value)) {
      if (!known.includes(name)) this.refuse([...path, name], `is not known here: known are ${known.join(', ')}`);
    }
    return value as Fields;
  }

  list(value: unknown, path: Path, most: number): readonly unknown[] {
    if (!Array.isArray(value)) this.refuse(path, 'is not a list');
    if (value.length > most) this.refuse(path, `has ${value.length} entries, allowed are ${most}`);
    return value as readonly unknown[];
  }

  number(value: unknown, path: Path, least: number, most: number): number {
    if (typeof value !== 'number' || !(value >= least && value <= most)) {
      this.refuse(path, `is ${JSON.stringify(value)}, not a number from ${least} to ${most}`);
    }
    return value;
  }

  whole(value: unknown, path: Path, least: number, most: number): number {
    const number = this.number(value, path, least, most);
    if (!Number.isInteger(number)) this.refuse(path, `is ${number}, not a whole number`);
    return number;
  }

  text(value: unknown, path: Path): string {
    // a rack may be called 12
    if (typeof value === 'number') return String(value);
    return typeof value === 'string' && value !== ''
      ? value
      : this.refuse(path, `is ${JSON.stringify(value)}, not a name`);
  }

  oneOf<Word extends string>(value: unknown, path: Path, words: readonly Word[]): Word {
    const found = words.find((word) => word === value);
    return found ?? this.refuse(path, `is ${JSON.stringify(value)}, not one of ${words.join(', ')}`);
  }
}
