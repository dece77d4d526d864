import { fromUtf8 } from '@webdfs/base';
import { Refusal } from '../refusal.ts';
import { MAX_QUERY_NAMES } from './limits.ts';
import { decodePercent, encodePercent } from './percent.ts';

interface Pair {
  readonly name: string;
  readonly value: string;
  readonly encodedName: string;
  readonly encodedValue: string;
}

const PLAIN = /^[A-Za-z0-9\-._~]*$/;

function decode(text: string): { text: string; encoded: string } {
  if (PLAIN.test(text)) return { text, encoded: text };
  const bytes = decodePercent(text, true);
  if (bytes === undefined) throw new Refusal('InvalidURI', 'The query has a bad escape or is not UTF-8.');
  return { text: fromUtf8(bytes), encoded: encodePercent(bytes, false) };
}

/** A query string, decoded once and kept encoded by Signature V4's rule. Of a name given twice the first counts. */
export class Query {
  static readonly NONE = new Query([]);
  readonly #pairs: readonly Pair[];

  private constructor(pairs: readonly Pair[]) {
    this.#pairs = pairs;
  }

  /** @throws Refusal InvalidURI for bad escapes, invalid UTF-8, or more than `MAX_QUERY_NAMES` names */
  static parse(raw: string): Query {
    if (raw === '') return Query.NONE;
    const pairs: Pair[] = [];
    for (const part of raw.split('&', MAX_QUERY_NAMES + 1)) {
      if (part === '') continue;
      const mark = part.indexOf('=');
      const name = decode(mark < 0 ? part : part.slice(0, mark));
      const value = decode(mark < 0 ? '' : part.slice(mark + 1));
      pairs.push({ name: name.text, value: value.text, encodedName: name.encoded, encodedValue: value.encoded });
    }
    if (pairs.length > MAX_QUERY_NAMES) throw new Refusal('InvalidURI', `More than ${MAX_QUERY_NAMES} query names.`);
    return new Query(pairs);
  }

  get size(): number {
    return this.#pairs.length;
  }

  get(name: string): string | undefined {
    for (const pair of this.#pairs) if (pair.name === name) return pair.value;
    return undefined;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  names(): string[] {
    return this.#pairs.map((pair) => pair.name);
  }

  /**
   * The canonical query string of Signature V4: sorted by encoded name, then value; a name without `=` gets one.
   *
   * @param without  a name that is not part of it, such as the signature itself
   */
  canonical(without?: string): string {
    if (this.#pairs.length === 0) return '';
    const kept = this.#pairs.filter((pair) => pair.name !== without);
    kept.sort((a, b) => order(a.encodedName, b.encodedName) || order(a.encodedValue, b.encodedValue));
    return kept.map((pair) => `${pair.encodedName}=${pair.encodedValue}`).join('&');
  }
}

/** Order of ASCII texts by their bytes. */
function order(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
