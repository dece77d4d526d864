import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { EXIT } from '../../command.ts';
import { runProgram } from '../../program.ts';
import { benchRescaleCommand } from './rescale.ts';

const folder = await mkdtemp(join(tmpdir(), 'webdfs-bench-'));
after(() => rm(folder, { recursive: true }));

async function run(...words: string[]): Promise<{ code: number; output: string; errors: string }> {
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const terminal = { input: new PassThrough(), output, errors, environment: {}, signal: new AbortController().signal };
  const shown = [text(output), text(errors)] as const;
  const code = await runProgram([benchRescaleCommand], ['bench', 'rescale', ...words], terminal, '1');
  output.end();
  errors.end();
  return { code, output: await shown[0], errors: await shown[1] };
}

test('an experiment ends with tables, a page, JSON and CSV, and says whether its gates pass', async () => {
  const { code, output } = await run('--experiments', 'planning', '--out', join(folder, 'out'));
  assert.equal(code, EXIT.OK);
  assert.match(output, /MetadataGenerator/);
  const files = await readdir(join(folder, 'out'));
  assert.deepEqual(files.toSorted(), ['parts-parts.csv', 'planning-planning.csv', 'report.html', 'report.json']);
  const report = JSON.parse(await readFile(join(folder, 'out', 'report.json'), 'utf8'));
  assert.ok(report.checks.every((check: { pass: boolean }) => check.pass));
});

test('an experiment that does not exist is refused, and those that do are named', async () => {
  const { code, errors } = await run('--experiments', 'grind');
  assert.equal(code, EXIT.USAGE);
  assert.match(errors, /no experiment grind, only grid, controls/);
});
