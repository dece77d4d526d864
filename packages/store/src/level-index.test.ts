import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { codeOf, utf8 } from '@webdfs/base';
import { type HouseUnderTest, lastBatchOf, testRowIndex } from './index-conformance.ts';
import { LevelIndexHouse } from './level-index.ts';

async function anEmptyFolder(): Promise<HouseUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-level-'));
  return {
    house: new LevelIndexHouse(),
    folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

testRowIndex('level', anEmptyFolder);

test('an index whose manifest is gone or spoilt is refused as CORRUPT, and opens empty once removed', async () => {
  await using under = await anEmptyFolder();
  const path = `${under.folder}/index`;
  for (const spoil of ['CURRENT', 'MANIFEST']) {
    {
      await using index = await under.house.open(path);
      await index.batch([{ key: utf8('a'), value: utf8('b') }], { sync: true });
    }
    const name = (await readdir(path)).find((file) => file.startsWith(spoil));
    assert.ok(name !== undefined);
    await writeFile(`${path}/${name}`, 'not what LevelDB wrote');
    await assert.rejects(under.house.open(path), (error) => codeOf(error) === 'CORRUPT');
    await under.house.remove(path);
  }
  await using index = await under.house.open(path);
  assert.equal(index.get(utf8('a')), undefined);
});

test('an index in use is refused as LOCKED, so that nobody takes it for a broken one', async () => {
  await using under = await anEmptyFolder();
  await using index = await under.house.open(`${under.folder}/index`);
  await assert.rejects(under.house.open(`${under.folder}/index`), (error) => codeOf(error) === 'LOCKED');
  assert.equal(index.get(utf8('a')), undefined);
});

const WRITER = `
  import { SeededRandom } from '@webdfs/base';
  const { LevelIndexHouse } = await import(${JSON.stringify(new URL('level-index.ts', import.meta.url).href)});
  const { numberedBatch } = await import(${JSON.stringify(new URL('index-conformance.ts', import.meta.url).href)});
  const random = new SeededRandom(1);
  const index = await new LevelIndexHouse().open(process.argv[1]);
  for (let number = 1; ; number++) {
    await index.batch(numberedBatch(random, number), { sync: number % 50 === 0 });
    process.stdout.write(number + '\\n');
  }
`;

test('a process killed amid its batches leaves whole batches, none of the answered ones missing', async () => {
  await using under = await anEmptyFolder();
  const path = `${under.folder}/index`;
  const options = ['--input-type=module', '--eval', WRITER, path];
  // Not all of execArgv: under the test runner it makes the child a runner too.
  const conditions = process.execArgv.filter((flag) => flag.startsWith('--conditions'));
  const child = spawn(process.execPath, [...conditions, ...options], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let answered = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    answered = Number(line);
    if (answered === 700) child.kill('SIGKILL');
  }
  assert.ok(answered >= 700);
  await using index = await under.house.open(path);
  assert.ok((await lastBatchOf(index)) >= answered);
});
