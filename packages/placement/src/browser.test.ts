import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

test('the room runs in a browser: at run time it needs nothing but itself', () => {
  const folder = new URL('.', import.meta.url);
  const files = readdirSync(folder).filter((name) => /^[a-z0-9-]+\.ts$/.test(name) && name !== 'conformance.ts');
  assert.ok(files.length > 20);
  const foreign: string[] = [];
  for (const name of files) {
    const text = readFileSync(new URL(name, folder), 'utf8');
    for (const [statement, source] of text.matchAll(/^(?:import|export)\b[^;]*? from '([^']+)';/gm)) {
      if (!source!.startsWith('./') || source === './conformance.ts') foreign.push(`${name}: ${statement}`);
    }
    assert.doesNotMatch(text, /\b(?:Buffer|process)\b/, name);
  }
  assert.deepEqual(foreign, []);
});

test('the room depends on no other, so that it can be had alone', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as object;
  assert.ok(!('dependencies' in manifest));
  assert.ok(!('peerDependencies' in manifest));
});
