import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { asGroupId, asPolicyId, concat, fromHex, toHex, utf8 } from '@webdfs/base';
import { packOwner, packSummary } from './record.ts';
import { decodeWriteRequest, encodeWriteRequest } from './request-codec.ts';
import type { WriteRequest } from './requests.ts';

const PAGE = readFileSync(new URL('../../../docs/formats/requests.md', import.meta.url), 'utf8');

/** The bytes of a block of the page, without what is said of them. */
function bytesOf(name: string): Uint8Array {
  const block = new RegExp(`\`\`\`hex ${name}\\n([^\`]*)\`\`\``).exec(PAGE)?.[1] ?? '';
  return fromHex(
    [...block.matchAll(/^((?:[0-9a-f]{2} ?)+?)(?: {2}.*)?$/gm)].map((line) => line[1]!.replaceAll(' ', '')).join(''),
  );
}

test('the example on the page decodes to the write that it tells of, and is what the encoder makes of it', () => {
  const key = concat([Uint8Array.of(0, 0, 0, 7), utf8('a/b')]);
  const etag = fromHex('5d41402abc4b2a76b9719d911017c592');
  const write: WriteRequest = {
    policy: asPolicyId(1),
    group: asGroupId(2_748),
    requestId: Uint8Array.from({ length: 16 }, (_, i) => i),
    ageMs: 250,
    kind: 'put',
    key,
    hashHigh: 0xabc12345,
    hashLow: 0x6789def0,
    conditions: { ifNoneMatch: ['*'] },
    requires: [],
    summary: packSummary({ size: 5, etag, parts: 0, flags: 0 }),
    owner: packOwner({ type: 'inline' }, '{}').owner,
    body: utf8('hello'),
  };
  const message = { head: bytesOf('head'), attached: [bytesOf('attached')] };
  const { request, revision } = decodeWriteRequest(message);
  assert.equal(revision, 41);
  assert.deepEqual(request, write);
  const encoded = encodeWriteRequest(write, 41);
  assert.equal(toHex(encoded.head), toHex(message.head));
  assert.equal(toHex(concat(encoded.attached)), toHex(message.attached[0]!));
});
