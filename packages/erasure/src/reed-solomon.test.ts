import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromHex, toHex, utf8 } from '@webdfs/base';
import { openKernel } from './open-kernel.ts';
import { ReedSolomon } from './reed-solomon.ts';

const kernel = openKernel();
const hex = (blocks: readonly Uint8Array[]): string[] => blocks.map(toHex);
const blank = (count: number, bytes: number): Uint8Array[] =>
  Array.from({ length: count }, () => new Uint8Array(bytes));
const TEXTS = ['WebDFS: four', 'data buckets', 'three parity', 'any 3 may di'];
const PARITY = ['26021d603031524306431111', 'f366844c25fcf657192271e7', 'd1cf173e94c15fbf702bdf70'];

test('worked bytes: four data, three parity', () => {
  const code = new ReedSolomon({ kernel, data: 4, parity: 3 });
  const data = TEXTS.map(utf8);
  const parity = blank(3, 12);
  code.encode(data, parity);
  assert.deepEqual(hex(parity), PARITY);
  assert.equal(code.verify([...data, ...parity]), true);
  code.update(2, fromHex('202020202000000000000000'), parity);
  assert.deepEqual(hex(parity), ['06223d401031524306431111', '53c624ec85fcf657192271e7', 'eaf42c05afc15fbf702bdf70']);
  const shards = [undefined, data[1], undefined, data[3], undefined, parity[1], parity[2]];
  const whole = code.decode(shards);
  assert.deepEqual(whole.slice(0, 4), [data[0], data[1], utf8('THREE parity'), data[3]]);
});
