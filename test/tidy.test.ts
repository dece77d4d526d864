import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';

/** Rules about the source as a test: floors, seams, sizes. */

const root = new URL('..', import.meta.url).pathname;
const FLOORS: Readonly<Record<string, number>> = {
  base: 0,
  placement: 1,
  erasure: 1,
  wire: 1,
  store: 2,
  cluster: 2,
  rescale: 2,
  replica: 3,
  history: 1,
  client: 5,
  server: 5,
  gateway: 6,
  webdfs: 7,
  sim: 8,
  bench: 8,
  cli: 9,
};
const MAX_LINES = 500;

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === 'node_modules' || entry.name === 'dist') return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sources(path);
    return entry.name.endsWith('.ts') ? [path] : [];
  });
}

const rooms = readdirSync(join(root, 'packages'));
const files = rooms.flatMap((room) =>
  sources(join(root, 'packages', room, 'src')).map((path) => ({
    room,
    name: relative(join(root, 'packages'), path),
    text: readFileSync(path, 'utf8'),
  })),
);
const production = files.filter(
  (file) => !/(\.test|\.bench|\.fuzz)\.ts$|\/testing\.ts$|conformance\.ts$/.test(file.name),
);

test('every room has a floor', () => {
  assert.deepEqual(rooms.toSorted(), Object.keys(FLOORS).toSorted());
});

test('a room imports only from floors below it, and only what its package.json declares', () => {
  const wrong: string[] = [];
  for (const { room, name, text } of files) {
    const manifest = JSON.parse(readFileSync(join(root, 'packages', room, 'package.json'), 'utf8'));
    for (const match of text.matchAll(/from '@webdfs\/([a-z]+)(?:\/[a-z]+)?'/g)) {
      const target = match[1]!;
      if (target === room) wrong.push(`${name} imports its own room by name`);
      else if (FLOORS[target]! >= FLOORS[room]!) wrong.push(`${name} climbs to ${target}`);
      else if (manifest.dependencies[`@webdfs/${target}`] === undefined)
        wrong.push(`${name} imports undeclared ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('time, chance and files are reached only through their seams', () => {
  const houses = /^(base\/src\/(clock|random|node-disk)\.ts|bench\/|cli\/|store\/src\/(folder-lock|level-index)\.ts)/;
  const banned =
    /\bDate\.now\(|\bMath\.random\(|\bsetTimeout\(|\bsetInterval\(|from 'node:fs(\/promises)?'|performance\.now\(/;
  const wrong = production
    .filter(({ name }) => !houses.test(name))
    .filter(({ text }) => banned.test(text.replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, '')))
    .map(({ name }) => `${name}: ${banned.exec(files.find((file) => file.name === name)!.text)?.[0]}`);
  assert.deepEqual(wrong, []);
});

test('no file outgrows its reader', () => {
  const large = files
    .filter(({ text }) => text.split('\n').length > MAX_LINES)
    .map(({ name, text }) => `${name}: ${text.split('\n').length}`);
  assert.deepEqual(large, []);
});

test('no file is named for nothing', () => {
  const vague = files
    .filter(({ name }) => /(^|\/)(utils?|helpers?|common|misc|manager)\.ts$/.test(name))
    .map(({ name }) => name);
  assert.deepEqual(vague, []);
});
