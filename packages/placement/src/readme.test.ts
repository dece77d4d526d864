import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

test('the example of the README gives one node of each rack', async () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, example] = /```ts\n(import[^`]*`r\$[^`]*`[^`]*)```/.exec(readme)!;
  const code = example!.replace("'@webdfs/placement'", JSON.stringify(new URL('./index.ts', import.meta.url).href));
  const { members } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { members: number[] };
  assert.deepEqual(new Set(members.map((node) => node % 3)), new Set([0, 1, 2]));
});
