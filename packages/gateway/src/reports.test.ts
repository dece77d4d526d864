import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aDoor } from './testing.ts';

test('a report is told to those who hold a key, and to no one else', async () => {
  await using door = await aDoor({
    reporter: (name, parameter) => Promise.resolve(name === 'where' ? { key: parameter('key') } : undefined),
  });
  const told = await door.ask('GET', '/-/where', { query: { key: 'a b' } });
  assert.deepEqual([told.status, told.text], [200, '{"key":"a b"}']);
  assert.equal((await door.ask('GET', '/-/where', { as: 'anyone' })).code, 'AccessDenied');
  assert.equal((await door.ask('GET', '/-/other')).status, 404);
  assert.equal((await door.ask('PUT', '/-/where')).status, 405);
});
