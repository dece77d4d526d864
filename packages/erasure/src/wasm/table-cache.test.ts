import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf } from '@webdfs/base';
import { BlockMemory } from '../block-memory.ts';
import { GF16, GF8 } from '../field.ts';
import { TableCache, type TableOwner } from './table-cache.ts';

/** Two columns of two rows: 128 bytes of tables in GF(2^8). */
const owner = (first: number): TableOwner => ({
  field: GF8,
  matrix: [
    [first, 1],
    [2, 3],
  ],
});

test('what was not used for longest makes room, and what is in use stays where it is', () => {
  const memory = new BlockMemory(new ArrayBuffer(384), 0, 384);
  const cache = new TableCache(memory);
  const [a, b, c, d] = [owner(5), owner(6), owner(7), owner(8)];
  const places = [a, b, c].map((one) => cache.addressOf(one));
  assert.deepEqual(places, [0, 128, 256]);
  assert.equal(cache.addressOf(a), places[0]);
  assert.equal(cache.addressOf(d), places[1]);
  assert.equal(cache.addressOf(a), places[0]);
  assert.equal(cache.addressOf(b), places[2]);
});

test('tables hold the products of both nibbles, column by column, row by row', () => {
  const memory = new BlockMemory(new ArrayBuffer(1024), 0, 1024);
  const at = new TableCache(memory).addressOf(owner(0x53));
  const tables = memory.view(at, 128);
  for (let nibble = 0; nibble < 16; nibble++) {
    assert.equal(tables[nibble], GF8.multiply(0x53, nibble));
    assert.equal(tables[16 + nibble], GF8.multiply(0x53, nibble << 4));
    assert.equal(tables[32 + nibble], GF8.multiply(2, nibble));
    assert.equal(tables[64 + nibble], nibble);
    assert.equal(tables[96 + 16 + nibble], GF8.multiply(3, nibble << 4));
  }
});

test('in GF(2^16) a nibble has a table of low and one of high bytes', () => {
  const memory = new BlockMemory(new ArrayBuffer(1024), 0, 1024);
  const at = new TableCache(memory).addressOf({ field: GF16, matrix: [[0xeb9b]] });
  const tables = memory.view(at, 128);
  for (let nibble = 0; nibble < 4; nibble++) {
    for (let value = 0; value < 16; value++) {
      const product = GF16.multiply(0xeb9b, value << (4 * nibble));
      assert.equal(tables[32 * nibble + value], product & 255);
      assert.equal(tables[32 * nibble + 16 + value], product >> 8);
    }
  }
});

test('tables that cannot fit at all are refused', () => {
  const cache = new TableCache(new BlockMemory(new ArrayBuffer(64), 0, 64));
  assert.throws(
    () => cache.addressOf(owner(1)),
    (error) => codeOf(error) === 'TOO_LARGE',
  );
});
