import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { Refusal } from '../refusal.ts';
import { childrenOf, MAX_DEPTH, MAX_NODES, readXml, textOf, type XmlNode } from './xml-read.ts';
import { documentOf, leaf, node, root } from './xml-write.ts';

const read = (text: string): XmlNode => readXml(Buffer.from(text));
const malformed = (error: unknown): boolean => error instanceof Refusal && error.code === 'MalformedXML';

test('what is written is read back, whatever the text is', (t) => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 5 }), (texts) => {
      const document = documentOf(root('Delete', ...texts.map((text) => node('Object', leaf('Key', text)))));
      const keys = childrenOf(read(document), 'Object').map((object) => textOf(object, 'Key'));
      assert.deepEqual(keys, texts);
    }),
    { seed: seedOf(t) },
  );
});

test('control characters survive, though XML 1.0 has no place for them', () => {
  const all = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).join('');
  assert.equal(textOf(read(node('A', leaf('Key', `${all}\ufffe\uffff`))), 'Key'), `${all}\ufffe\uffff`);
});

test('prefixes, attributes, comments and white space are passed over', () => {
  const found = read(
    '\ufeff<?xml version="1.0"?>\n<!-- hi -->\n<s3:Delete xmlns:s3="http://s3" a=\'b\' >\n <s3:Quiet>true</s3:Quiet><!-- - -->' +
      '<s3:Object/>\n</s3:Delete >\n',
  );
  assert.equal(found.name, 'Delete');
  assert.equal(textOf(found, 'Quiet'), 'true');
  assert.equal(childrenOf(found, 'Object').length, 1);
});

test('what could do harm, or is no document, is refused', () => {
  const bad = [
    '',
    'text',
    '<a>',
    '<a></b>',
    '<a><b></a></b>',
    '<a/><b/>',
    '<a>&nbsp;</a>',
    '<a>&amp</a>',
    '<a>&#xD800;</a>',
    '<a>&#x110000;</a>',
    '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    '<a><![CDATA[b]]></a>',
    '<a><?php ?></a>',
    '<a>text<b/></a>',
    '<a b></a>',
    '<a b=c></a>',
    '<a b="<"></a>',
    '<a><!-- </a>',
    '< a/>',
    '<1/>',
  ];
  for (const text of bad) assert.throws(() => read(text), malformed, text);
  assert.throws(() => readXml(Buffer.from([0x3c, 0x61, 0x3e, 0xff])), malformed);
  assert.throws(() => textOf(read('<a><b>1</b><b>2</b></a>'), 'b'), malformed);
});

test('depth and number of elements have their limits', () => {
  const deep = (depth: number): string => '<a>'.repeat(depth) + '</a>'.repeat(depth);
  assert.ok(read(deep(MAX_DEPTH)));
  assert.throws(() => read(deep(MAX_DEPTH + 1)), malformed);
  const wide = (count: number): string => `<a>${'<b/>'.repeat(count - 1)}</a>`;
  assert.ok(read(wide(MAX_NODES)));
  assert.throws(() => read(wide(MAX_NODES + 1)), malformed);
});

test('any text is read or refused, in time that grows with its length', (t) => {
  const piece = fc.constantFrom(
    '<a>',
    '</a>',
    '<a ',
    'b="c"',
    '>',
    '/>',
    '<!--',
    '-->',
    '&amp;',
    '&',
    '<?xml ?>',
    ' ',
    'text',
    '<![CDATA[',
    ']]>',
    '<!DOCTYPE',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      try {
        read(pieces.join(''));
      } catch (error) {
        assert.ok(malformed(error), String(error));
      }
    }),
    { seed: seedOf(t), numRuns: 2_000 },
  );
});
