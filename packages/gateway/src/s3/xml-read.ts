import { isUtf8 } from 'node:buffer';
import { Refusal } from '../refusal.ts';

/** An element: its name without prefix, its text, its children in order. */
export interface XmlNode {
  readonly name: string;
  readonly text: string;
  readonly children: readonly XmlNode[];
}

/** Elements inside elements. */
export const MAX_DEPTH = 8;
/** Elements of one document: 10 000 parts with three fields each fit twice. */
export const MAX_NODES = 100_000;

const NAME = /[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?/y;
const ATTRIBUTE = /\s+[A-Za-z_][\w.:-]*\s*=\s*(?:"[^"<]*"|'[^'<]*')/y;
const SPACE = /\s*/y;
const DECLARATION = /^<\?xml\s[^?<>]*\?>/;
const ENTITY = /&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g;

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function malformed(what: string): Refusal {
  return new Refusal('MalformedXML', `The XML document is not well formed: ${what}.`);
}

/**
 * Reads the small documents that S3's requests carry. It knows elements, attributes (skipped), text and the five named
 * entities; it refuses document types, processing instructions, CDATA, and what is deeper or more than the limits.
 *
 * @throws Refusal MalformedXML
 */
export function readXml(bytes: Uint8Array): XmlNode {
  if (!isUtf8(bytes)) throw malformed('it is not UTF-8');
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return new XmlReader(text).document();
}

class XmlReader {
  readonly #text: string;
  #at = 0;
  #nodes = 0;

  constructor(text: string) {
    this.#text = text.codePointAt(0) === 0xfeff ? text.slice(1) : text;
  }

  document(): XmlNode {
    this.#at = DECLARATION.exec(this.#text)?.[0].length ?? 0;
    this.#skipMisc();
    const root = this.#element(1);
    this.#skipMisc();
    if (this.#at !== this.#text.length) throw malformed('something follows the root');
    return root;
  }

  /** Matches a sticky expression here and moves past it. */
  #take(expression: RegExp): string | undefined {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #skipMisc(): void {
    do this.#take(SPACE);
    while (this.#comment());
  }

  /** Skips a comment, if one is here. */
  #comment(): boolean {
    if (!this.#text.startsWith('<!--', this.#at)) return false;
    const end = this.#text.indexOf('-->', this.#at + 4);
    if (end < 0) throw malformed('a comment has no end');
    this.#at = end + 3;
    return true;
  }

  #expect(text: string): void {
    if (!this.#text.startsWith(text, this.#at)) throw malformed(`${text} is missing at character ${this.#at}`);
    this.#at += text.length;
  }

  #element(depth: number): XmlNode {
    if (depth > MAX_DEPTH) throw malformed(`elements are nested deeper than ${MAX_DEPTH}`);
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES) throw malformed(`it has more than ${MAX_NODES} elements`);
    this.#expect('<');
    const tag = this.#take(NAME);
    if (tag === undefined) throw malformed(`no element name at character ${this.#at}`);
    while (this.#take(ATTRIBUTE) !== undefined);
    this.#take(SPACE);
    const name = tag.slice(tag.indexOf(':') + 1);
    if (this.#text.startsWith('/>', this.#at)) {
      this.#at += 2;
      return { name, text: '', children: [] };
    }
    this.#expect('>');
    const content = this.#content(depth);
    this.#expect(`</${tag}`);
    this.#take(SPACE);
    this.#expect('>');
    return { name, ...content };
  }

  /** Everything up to the end tag. */
  #content(depth: number): { text: string; children: XmlNode[] } {
    const children: XmlNode[] = [];
    let text = '';
    for (;;) {
      const next = this.#text.indexOf('<', this.#at);
      if (next < 0) throw malformed('an element has no end');
      text += decodeText(this.#text.slice(this.#at, next));
      this.#at = next;
      if (this.#text.startsWith('</', next)) break;
      if (this.#comment()) continue;
      children.push(this.#element(depth + 1));
    }
    if (children.length > 0 && text.trim() !== '') throw malformed('text stands between elements');
    return { text, children };
  }
}

function decodeText(text: string): string {
  if (text.includes(']]>')) throw malformed('a text holds ]]>');
  if (!text.includes('&')) return text;
  const known = text.match(ENTITY)?.length ?? 0;
  if (known !== text.split('&').length - 1) throw malformed('an entity is not one of the five');
  return text.replace(ENTITY, (_all, name?: string, decimal?: string, hex?: string) => {
    if (name !== undefined) return NAMED[name]!;
    return characterOf(decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal));
  });
}

function characterOf(code: number): string {
  if (code > 0x10_ff_ff || (code >= 0xd8_00 && code <= 0xdf_ff)) throw malformed('a reference names no character');
  return String.fromCodePoint(code);
}

/** The children of a name. */
export function childrenOf(node: XmlNode, name: string): XmlNode[] {
  return node.children.filter((child) => child.name === name);
}

/** The text of the only child of a name, or undefined. @throws Refusal MalformedXML if there are two */
export function textOf(node: XmlNode, name: string): string | undefined {
  const found = childrenOf(node, name);
  if (found.length > 1) throw malformed(`${name} comes twice`);
  return found[0]?.text;
}

/** @throws Refusal MalformedXML if the root has another name */
export function expectRoot(node: XmlNode, name: string): XmlNode {
  if (node.name !== name) throw malformed(`the root is not ${name}`);
  return node;
}
