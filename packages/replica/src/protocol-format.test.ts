import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fromHex, fromUtf8, toHex } from '@webdfs/base';
import { BatchWriter, unpackBatch } from './message-codec.ts';

const PAGE = new URL('../../../docs/formats/protocol.md', import.meta.url);

/** The hex dumps of the page, by their names. */
function examples(): Map<string, Uint8Array> {
  const dumps = new Map<string, Uint8Array>();
  for (const [, name, dump] of readFileSync(PAGE, 'utf8').matchAll(/```hex (\w+)\n([^`]*)```/g)) {
    const digits = dump!
      .replaceAll(/^[0-9a-f]{4} {2}/gm, '')
      .replaceAll(/ {2}.*$/gm, '')
      .replaceAll(/\s/g, '');
    dumps.set(name!, fromHex(digits));
  }
  return dumps;
}

test('the post on the format page is decoded as it says there, and packed the same again', () => {
  const page = examples();
  const attached = [page.get('section')!, page.get('body')!];
  const { session, messages } = unpackBatch({ head: page.get('head')!, attached });
  assert.equal(session, 5);
  const [ack, append] = messages;
  assert.ok(ack?.type === 'ack' && append?.type === 'append');
  assert.deepEqual([ack.group, ack.ballot, ack.last, ack.expects], [0x0a2f, 7, 41, undefined]);
  assert.deepEqual([append.commit, append.entry.sequence, append.entry.kind], [41, 42, 1]);
  assert.equal(fromUtf8(append.entry.key.subarray(4)), 'notes/a.txt');
  assert.equal(fromUtf8(append.entry.body), 'hello');
  const writer = new BatchWriter();
  for (const message of messages) writer.add(message);
  const packed = writer.take(session);
  assert.equal(toHex(packed.head), toHex(page.get('head')!));
  assert.deepEqual(packed.attached.map(toHex), attached.map(toHex));
});
