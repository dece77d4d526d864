import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHUNK_BYTES, PAGE_BYTES, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { PageArena } from './page-arena.ts';

const CHUNKS = 160;

function anArena(): PageArena {
  return new PageArena({ most: CHUNKS * CHUNK_BYTES, pages: (bytes) => new Uint8Array(bytes) });
}

test('no two parts overlap, all begin on page borders, and what was given back is given out again', (t) => {
  const random = new SeededRandom(seedOf(t));
  const arena = anArena();
  const held = new Map<number, Uint8Array>();
  let used = 0;
  for (let i = 1; i <= 2_000; i++) {
    const part = random.below(2) === 0 ? arena.take((1 + random.below(16)) * CHUNK_BYTES) : undefined;
    if (part !== undefined) {
      assert.ok(part.byteOffset % PAGE_BYTES === 0 && part.length % CHUNK_BYTES === 0 && part.length > 0);
      new DataView(part.buffer, part.byteOffset).setUint32(0, i);
      new DataView(part.buffer, part.byteOffset + part.length - 4).setUint32(0, i);
      held.set(i, part);
      used += part.length;
    } else if (held.size > 0) {
      const [key, gone] = [...held][random.below(held.size)]!;
      const view = new DataView(gone.buffer, gone.byteOffset, gone.length);
      assert.deepEqual([view.getUint32(0), view.getUint32(gone.length - 4)], [key, key], 'nobody else wrote here');
      held.delete(key);
      arena.giveBack(gone);
      used -= gone.length;
    }
    assert.equal(arena.used, used);
  }
});

test('an arena gives all it has, in shorter parts where no long one is left, and then nothing', () => {
  const arena = anArena();
  const parts: Uint8Array[] = [];
  for (let part = arena.take(CHUNK_BYTES); part !== undefined; part = arena.take(CHUNK_BYTES)) parts.push(part);
  assert.equal(parts.length, CHUNKS);
  for (const [i, part] of parts.entries()) if (i % 4 !== 0) arena.giveBack(part);
  for (let i = 0; i < CHUNKS / 4; i++) assert.equal(arena.take(16 * CHUNK_BYTES)?.length, 3 * CHUNK_BYTES);
  assert.equal(arena.take(16 * CHUNK_BYTES), undefined);
});

test('memory that is given back twice, or to another arena, is a bug that is told', () => {
  const arena = anArena();
  const part = arena.take(CHUNK_BYTES)!;
  arena.giveBack(part);
  assert.throws(() => arena.giveBack(part), /once/);
  assert.throws(() => arena.giveBack(new Uint8Array(CHUNK_BYTES)), /came from/);
});
