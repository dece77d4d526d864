import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fromHex, toHex } from '@webdfs/base';
import { etagOf, packOwner, packSummary, unpackOwner, unpackSummary } from '@webdfs/replica';
import { blockRuns } from './body-reader.ts';
import { packFacts, unpackFacts } from './facts.ts';
import { bucketOf, keyOf, partRow, readHiddenRow, uploadRow } from './keyspace.ts';

const page = readFileSync(new URL('../../../docs/formats/record.md', import.meta.url), 'utf8');

/** A dump of the page: hex pairs from the beginning of each line, then two spaces and words. */
function dump(name: string): Uint8Array {
  const [, text] = page.split(`\`\`\`hex ${name}\n`);
  assert.ok(text !== undefined, `the page has a dump ${name}`);
  const lines = text.slice(0, text.indexOf('```')).split('\n');
  return fromHex(lines.map((line) => line.split('  ')[0]!.replaceAll(' ', '')).join(''));
}

const uploadId = fromHex('019353cd3bff00000000000000000001');

test('the example on the page of the format is what the code reads', () => {
  assert.equal(bucketOf(dump('key')), 7);
  assert.equal(toHex(keyOf(dump('key'))), '610062');
  const summary = unpackSummary(dump('summary'));
  assert.deepEqual([summary.size, summary.parts, summary.flags], [9_000_000, 2, 0]);
  assert.equal(etagOf(dump('summary')), '5d41402abc4b2a76b9719d911017c592-2');
  const { layout, facts } = unpackOwner(dump('owner'), dump('body'));
  assert.ok(layout.type === 'parts');
  assert.equal(layout.blockBytes, 8_388_608);
  assert.deepEqual(
    layout.parts.map(({ number, size }) => [number, size]),
    [
      [1, 8_400_000],
      [3, 600_000],
    ],
  );
  assert.deepEqual(unpackFacts(facts), {
    headers: { 'content-type': 'text/plain' },
    user: { by: 'me' },
    checksums: { crc32: 'y/Q5Jg==' },
    checksumType: 'FULL_OBJECT',
    uploadId: toHex(uploadId),
  });
  const runs = [...blockRuns(layout, summary.size, { offset: 0, length: summary.size })];
  assert.deepEqual(
    runs.map(({ id, length }) => [toHex(id), length]),
    [
      ['019353cd3c00aabbccddeeff0011223300000000', 8_388_608],
      ['019353cd3c00aabbccddeeff0011223300000001', 11_392],
      ['019353cd3c00554433221100ffeeddcc00000000', 600_000],
    ],
  );
});

test('the example on the page of the format is what the code writes', () => {
  const { layout, facts } = unpackOwner(dump('owner'), dump('body'));
  const { owner, body } = packOwner(layout, packFacts(unpackFacts(facts)));
  assert.equal(toHex(owner), toHex(dump('owner')));
  assert.equal(toHex(body!), toHex(dump('body')));
  assert.equal(toHex(packSummary(unpackSummary(dump('summary')))), toHex(dump('summary')));
  const key = keyOf(dump('key'));
  assert.equal(toHex(uploadRow(7, key, uploadId)), toHex(dump('upload')));
  assert.equal(toHex(partRow(7, key, { uploadId, number: 3 })), toHex(dump('part')));
  assert.deepEqual(readHiddenRow(dump('part')), { bucket: 7, key, uploadId, number: 3 });
});
