import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

test('the room runs in a browser: at run time it needs nothing but itself and the errors', () => {
  const folder = new URL('.', import.meta.url);
  const files = readdirSync(folder).filter((name) => /^[a-z-]+\.ts$/.test(name) && name !== 'conformance.ts');
  const texts = files.map((name) => readFileSync(new URL(name, folder), 'utf8'));
  texts.push(readFileSync(new URL('../../base/src/errors.ts', folder), 'utf8'));
  const needed = new Set<string>();
  for (const text of texts) {
    for (const [statement, source] of text.matchAll(/^(?:import|export)\b[^;]*? from '([^']+)';/gm)) {
      if (!/^(?:import|export) type\b/.test(statement) && !source!.startsWith('./')) needed.add(source!);
    }
    assert.doesNotMatch(text, /\b(?:Buffer|process)\b/);
  }
  assert.deepEqual([...needed], ['@webdfs/base/errors']);
});
