import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { packFacts, unpackFacts } from './facts.ts';

test('facts survive packing, whatever the texts', (t) => {
  // any UTF-16 units, lone surrogates among them
  const text = fc.array(fc.nat(0xffff), { maxLength: 8 }).map((units) => String.fromCharCode(...units));
  const texts = fc.array(fc.tuple(text, text), { maxLength: 4 }).map((pairs) => Object.fromEntries(pairs));
  fc.assert(
    fc.property(texts, texts, (headers, user) => {
      const { headers: h, user: u } = unpackFacts(packFacts({ headers, user, uploadId: 'x' }));
      assert.deepEqual([h, u], [headers, user]);
    }),
    { seed: seedOf(t) },
  );
});

test('an object of which nothing is said takes two bytes', () => {
  assert.equal(packFacts({ headers: {}, user: {} }), '{}');
});

test('what is no table of texts is called corrupt', () => {
  for (const text of ['', '[1', 'null', '1', '{"h":1}', '{"u":{"a":2}}', '{"c":null}']) {
    assert.throws(() => unpackFacts(text), { code: 'CORRUPT' }, text);
  }
});

test('facts have a limit in bytes, not in characters', () => {
  const of = (text: string): string => packFacts({ headers: {}, user: { a: text } });
  assert.equal(of('x'.repeat(12_000)).length, 12_014);
  assert.throws(() => of('\u20ac'.repeat(5_000)), { code: 'TOO_LARGE' });
  assert.throws(() => of('x'.repeat(12_300)), { code: 'TOO_LARGE', details: { what: 'metadata' } });
});
