import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathInside } from './local-files.ts';

test('a key becomes a path below the folder', () => {
  assert.equal(pathInside('/tmp/x', 'a/b.txt'), '/tmp/x/a/b.txt');
});

test('a key that would leave the folder, or is no file name, is refused', () => {
  for (const name of ['../a', 'a/../../b', 'a/..', '/etc/passwd', 'a/', '', 'a\0b']) {
    assert.throws(() => pathInside('/tmp/x', name), { code: 'INVALID' }, JSON.stringify(name));
  }
});
