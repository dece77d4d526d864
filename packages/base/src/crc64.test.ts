import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { toHex, utf8 } from './bytes.ts';
import { Crc64Nvme } from './crc64.ts';
import { seedOf } from './testing.ts';

/** Bit by bit, from the definition. */
function slow(bytes: Uint8Array): string {
  let crc = 0xffff_ffff_ffff_ffffn;
  for (const byte of bytes) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1n) === 0n ? crc >> 1n : (crc >> 1n) ^ 0x9a6c9329ac4bc9b5n;
  }
  return (crc ^ 0xffff_ffff_ffff_ffffn).toString(16).padStart(16, '0');
}

test('the check value of CRC-64/NVME', () => {
  assert.equal(toHex(new Crc64Nvme().update(utf8('123456789')).digest()), 'ae8b14860a799888');
  assert.equal(toHex(new Crc64Nvme().digest()), '0000000000000000');
});

test('agrees with the definition for any bytes in any pieces', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.array(fc.nat(300)), (bytes, cuts) => {
      const crc = new Crc64Nvme();
      let from = 0;
      for (const cut of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
        crc.update(bytes.subarray(from, cut));
        from = Math.max(from, Math.min(cut, bytes.length));
      }
      assert.equal(toHex(crc.digest()), slow(bytes));
    }),
    { seed: seedOf(t), numRuns: 200 },
  );
});

test('long input, longer than the program takes at once, in one piece and in many', () => {
  const bytes = Uint8Array.from({ length: 200_003 }, (_, i) => (i * 31) & 255);
  const expected = slow(bytes);
  assert.equal(toHex(new Crc64Nvme().update(bytes).digest()), expected);
  const crc = new Crc64Nvme();
  for (let at = 0; at < bytes.length; at += 65_537) crc.update(bytes.subarray(at, at + 65_537));
  assert.equal(toHex(crc.digest()), expected);
});

test('two that run side by side do not disturb each other', () => {
  const [one, two] = [new Crc64Nvme(), new Crc64Nvme()];
  for (const byte of utf8('123456789')) {
    one.update(Uint8Array.of(byte));
    two.update(Uint8Array.of(byte ^ 255));
  }
  assert.equal(toHex(one.digest()), 'ae8b14860a799888');
  assert.equal(toHex(two.digest()), slow(utf8('123456789').map((byte) => byte ^ 255)));
});
