import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { BlockMemory } from './block-memory.ts';

test('blocks never overlap, are zero, start at cache lines, and what is freed is given out again', (t) => {
  const random = new SeededRandom(seedOf(t));
  const memory = new BlockMemory(new ArrayBuffer(65_536), 4096, 32_768);
  let blocks: Uint8Array[] = [];
  for (let round = 0; round < 2000; round++) {
    if (random.below(2) === 0 && blocks.length > 0) {
      const at = random.below(blocks.length);
      memory.free(blocks[at]!);
      blocks = blocks.toSpliced(at, 1);
      continue;
    }
    try {
      const block = memory.allocate(random.below(2000));
      assert.ok(block.every((byte) => byte === 0));
      assert.equal(block.byteOffset % 64, 0);
      assert.ok(block.byteOffset >= 4096 && block.byteOffset + block.length <= 4096 + 32_768);
      for (const other of blocks) {
        assert.ok(
          block.byteOffset >= other.byteOffset + other.length || other.byteOffset >= block.byteOffset + block.length,
        );
      }
      blocks.push(block.fill(0xff));
    } catch (error) {
      assert.equal(codeOf(error), 'TOO_LARGE');
    }
  }
  for (const block of blocks) memory.free(block);
  assert.equal(memory.allocate(32_768).length, 32_768);
});

test('what is no block, or none any more, cannot be freed', () => {
  const memory = new BlockMemory(new ArrayBuffer(1024), 0, 1024);
  const block = memory.allocate(100);
  const invalid = (error: unknown): boolean => codeOf(error) === 'INVALID';
  assert.throws(() => memory.free(block.subarray(64)), invalid);
  assert.throws(() => memory.free(new Uint8Array(100)), invalid);
  memory.free(block);
  assert.throws(() => memory.free(block), invalid);
  assert.throws(() => memory.allocate(-1), invalid);
  assert.throws(() => memory.allocate(1.5), invalid);
});
