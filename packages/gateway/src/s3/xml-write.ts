/** S3's documents, written by hand: a few elements, every text escaped. */

// all control characters too: XML 1.0 cannot hold most of them even as references, yet S3 writes them so and clients
// that list odd keys without `encoding-type=url` expect it
// oxlint-disable-next-line no-control-regex
const SPECIAL = /[&<>"'\0-\x1f\x7f\ufffe\uffff]/g;
// oxlint-disable-next-line no-control-regex
const HAS_SPECIAL = /[&<>"'\0-\x1f\x7f\ufffe\uffff]/;

const NAMED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

export function escapeXml(text: string): string {
  if (!HAS_SPECIAL.test(text)) return text;
  return text.replace(SPECIAL, (character) => NAMED[character] ?? `&#x${character.charCodeAt(0).toString(16)};`);
}

/** An element with a text, escaped; nothing at all for undefined. */
export function leaf(name: string, text: string | number | boolean | undefined): string {
  if (text === undefined) return '';
  return `<${name}>${escapeXml(String(text))}</${name}>`;
}

/** An element around elements that are written already. */
export function node(name: string, ...children: readonly string[]): string {
  return `<${name}>${children.join('')}</${name}>`;
}

const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

/** The root of a document, without the declaration. */
export function root(name: string, ...children: readonly string[]): string {
  return `<${name} xmlns="${NAMESPACE}">${children.join('')}</${name}>`;
}

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';

export function documentOf(root: string): string {
  return DECLARATION + root;
}
