import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadCommands } from './commands.ts';

test('the first word brings its commands and no others, any other word brings all, the version none', async () => {
  const all = await loadCommands(undefined);
  assert.deepEqual(await loadCommands('nothing'), all);
  assert.deepEqual(await loadCommands('--version'), []);
  const first = new Set(all.map(({ name }) => name.split(' ')[0]!));
  for (const word of first) {
    assert.deepEqual(
      await loadCommands(word),
      all.filter(({ name }) => name.split(' ')[0] === word),
    );
  }
});
