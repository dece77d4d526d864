import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byteRateOf, bytesOf, shareOf } from './amounts.ts';
import { UsageError } from './command.ts';

test('rates are read in units of 1024 and of 1000', () => {
  assert.equal(byteRateOf('50MiB'), 52_428_800);
  assert.equal(byteRateOf('1.5 GB/s'), 1_500_000_000);
  assert.equal(byteRateOf('65536'), 65_536);
  assert.equal(bytesOf('2GiB'), 2_147_483_648);
  assert.throws(() => bytesOf('2GiB/s'), UsageError);
});

test('what is no rate or share, or too little, is refused', () => {
  for (const word of ['', 'fast', '50 mb', '-1MiB', '1KiB', '0']) assert.throws(() => byteRateOf(word), UsageError);
  for (const word of ['', '0', '1.5', 'half']) assert.throws(() => shareOf(word), UsageError);
  assert.equal(shareOf('0.5'), 0.5);
});
