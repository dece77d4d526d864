import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { EXIT } from '../../command.ts';
import { runProgram } from '../../program.ts';
import { benchPlacementCommand } from './placement.ts';

const folder = await mkdtemp(join(tmpdir(), 'webdfs-bench-'));
after(() => rm(folder, { recursive: true }));
const out = join(folder, 'out');
const cluster = join(folder, 'cluster.yaml');
await writeFile(cluster, 'groups: 256\ncopies: 2\nseed: 5\nsubclusters: [{nodes: 1-4}, {nodes: 5-8, weight: 2}]\n');

async function run(...words: string[]): Promise<{ code: number; output: string; errors: string }> {
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const terminal = { input: new PassThrough(), output, errors, environment: {}, signal: new AbortController().signal };
  const shown = [text(output), text(errors)] as const;
  const code = await runProgram([benchPlacementCommand], ['bench', 'placement', ...words], terminal, '1');
  output.end();
  errors.end();
  return { code, output: await shown[0], errors: await shown[1] };
}

test('a cluster in a file goes through the experiments; tables are printed, a page, JSON and CSV written', async () => {
  const words = [
    '--quick',
    '--algorithms',
    'wrd,rush-p',
    '--experiments',
    'founding',
    '--topology',
    cluster,
    '--out',
    out,
  ];
  const { code, output } = await run(...words);
  assert.equal(code, EXIT.OK);
  assert.match(output, /cluster\.yaml: reorganisation/);
  assert.match(output, /--seed 5 --seeds 1 --quick/, 'the seed is that of the file');
  const files = await readdir(out);
  for (const name of ['report.html', 'report.json', 'topology-reorganisation-factors.csv'])
    assert.ok(files.includes(name));
  const csv = await readFile(join(out, 'topology-reorganisation-factors.csv'), 'utf8');
  assert.match(csv, /^change,optimum,wrd,rush-p\r\n/);
});

test('with --json the report is one line of JSON', async () => {
  const words = ['--quick', '--json', '--algorithms', 'wrd', '--experiments', 'founding', '--topology', cluster];
  const { output } = await run(...words, '--out', out, '--seed', '9');
  const report = JSON.parse(output);
  assert.deepEqual([report.format, report.version, report.environment.seed], ['webdfs-report', 1, 9]);
});

test('what is not known is named with what is: algorithms, experiments, files', async () => {
  const algorithm = await run('--algorithms', 'crush', '--out', out);
  assert.deepEqual([algorithm.code, /crush; there are wrd, /.test(algorithm.errors)], [EXIT.USAGE, true]);
  const experiment = await run('--experiments', 'magic');
  assert.deepEqual(
    [experiment.code, /no experiment magic, only original, /.test(experiment.errors)],
    [EXIT.USAGE, true],
  );
  const file = await run('--topology', join(folder, 'none.yaml'));
  assert.deepEqual([file.code, /cannot read .*none\.yaml/.test(file.errors)], [EXIT.NOT_FOUND, true]);
  assert.equal((await run('more')).code, EXIT.USAGE);
});
