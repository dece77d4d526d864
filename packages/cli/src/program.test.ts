import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { WebdfsError } from '@webdfs/base';
import { folderOf, parseAddress } from './address.ts';
import { type Command, EXIT } from './command.ts';
import { runProgram } from './program.ts';

const fails: Command = {
  name: 'fails',
  usage: 'fails',
  summary: 'Fails.',
  options: { times: { type: 'string', value: 'N', about: 'how often' } },
  async run(args) {
    args.count('times', 1, { least: 1, most: 3 });
    throw new WebdfsError('NOT_FOUND', 'there is nothing', { cause: new Error('looked everywhere') });
  },
};

const familyMember: Command = {
  name: 'family member',
  usage: 'family member WORD',
  summary: 'Says the word.',
  options: {},
  async run(args, terminal) {
    terminal.output.write(args.positionals.join('+'));
    return EXIT.OK;
  },
};

async function run(...words: string[]): Promise<{ code: number; output: string; errors: string }> {
  const output = new PassThrough();
  const errors = new PassThrough();
  const terminal = { input: new PassThrough(), output, errors, environment: {}, signal: new AbortController().signal };
  const code = await runProgram([fails, familyMember], words, terminal, '1.2.3');
  output.end();
  errors.end();
  return { code, output: await text(output), errors: await text(errors) };
}

test('an error ends with the code of its kind, and says what and why', async () => {
  const { code, errors } = await run('fails');
  assert.equal(code, EXIT.NOT_FOUND);
  assert.equal(errors, 'webdfs fails: there is nothing: looked everywhere\n');
});

test('with --json an error is JSON', async () => {
  const { errors } = await run('fails', '--json');
  assert.deepEqual(JSON.parse(errors), { error: 'there is nothing: looked everywhere', exitCode: EXIT.NOT_FOUND });
});

test('wrong words are told apart from failures', async () => {
  for (const words of [['fails', '--times', '4'], ['fails', '--times', 'x'], ['fails', '--no-such'], ['nothing'], []]) {
    assert.equal((await run(...words)).code, EXIT.USAGE, words.join(' '));
  }
});

test('a command that does not exist is named, and nothing else', async () => {
  assert.equal((await run('nothing')).errors, 'webdfs: there is no command nothing: "webdfs help" lists them\n');
});

test('a command of a family is found by two words, and the family lists its members', async () => {
  assert.equal((await run('family', 'member', 'one', 'two')).output, 'one+two');
  assert.match((await run('family', '--help')).output, /webdfs family member WORD {2}Says the word\./);
  const { code, errors } = await run('family', 'stranger');
  assert.equal(code, EXIT.USAGE);
  assert.equal(errors, 'webdfs: there is no command family stranger: there is "webdfs family member"\n');
});

test('help and version are answered', async () => {
  assert.match((await run('help')).output, /webdfs fails {2,}Fails\./);
  assert.match((await run('fails', '--help')).output, /--times N {2,}how often\n {2}--json {2,}\S/);
  assert.match((await run('--version')).output, /^webdfs 1\.2\.3 /);
});

test('an address is a bucket and a key, whatever the key holds', () => {
  assert.deepEqual(parseAddress('s3://b/a//b/../c'), { bucket: 'b', key: 'a//b/../c' });
  assert.deepEqual(parseAddress('s3://b'), { bucket: 'b', key: '' });
  assert.throws(() => parseAddress('b/a'), { name: 'UsageError' });
  assert.throws(() => parseAddress(`s3://b/${'é'.repeat(513)}`), { name: 'UsageError' });
});

test('a folder is told from keys that only begin alike', () => {
  assert.deepEqual(['', 'logs', 'logs/'].map(folderOf), ['', 'logs/', 'logs/']);
});
