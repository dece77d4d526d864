import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { EXIT } from '../../command.ts';
import { runProgram } from '../../program.ts';
import { clusterCommands } from '../cluster.ts';

async function run(...words: string[]): Promise<{ code: number; errors: string }> {
  const errors = new PassThrough();
  const streams = { input: new PassThrough(), output: new PassThrough(), errors };
  const terminal = { ...streams, environment: {}, signal: new AbortController().signal };
  const code = await runProgram(clusterCommands, ['cluster', ...words], terminal, '1.2.3');
  errors.end();
  return { code, errors: await text(errors) };
}

test('a change whose words are wrong is refused before anybody is asked', async () => {
  for (const [words, says] of [
    [['set-policy'], /--copies, --min-copies, or both/],
    [['set-policy', '--copies', '0'], /--copies takes a whole number from 1 to 32/],
    [['reweight', '5'], /usage: webdfs cluster reweight NODES WEIGHT/],
    [['drain', '1', '2'], /usage: webdfs cluster drain NODES/],
    [['rescale', 'hurry'], /usage: webdfs cluster rescale status\|watch/],
  ] as const) {
    const { code, errors } = await run(...words);
    assert.equal(code, EXIT.USAGE, errors);
    assert.match(errors, says);
  }
});
