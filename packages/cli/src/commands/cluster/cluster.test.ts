import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { EXIT } from '../../command.ts';

const MAIN = new URL('../../main.ts', import.meta.url).pathname;

/** Runs the program as a process of its own: what keeps it alive, and with what it ends, is its own affair. */
function webdfs(...words: string[]): Promise<{ code: number; errors: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...process.execArgv, MAIN, ...words], (error, _output, errors) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, errors });
    });
  });
}

test('an etcd that is away is waited for, then told once, with the code for that', async () => {
  const { code, errors } = await webdfs('cluster', 'usage', '--join', 'etcd://127.0.0.1:1', '--cluster', 'home');
  assert.equal(code, EXIT.UNREACHABLE, errors);
  assert.match(errors, /^webdfs cluster usage: etcd is away: connect ECONNREFUSED 127\.0\.0\.1:1\n$/);
});

test('a node is not started with words that are wrong', async () => {
  const etcd = ['--join', 'etcd://127.0.0.1:1', '--cluster', 'home', '--data', '/nowhere'];
  for (const [words, says] of [
    [['--listen', '0.0.0.0:9000'], /--advertise/],
    [['--listen', 'nowhere'], /HOST:PORT/],
    [['--listen', '127.0.0.1:9000', '--weight', '0'], /--weight/],
    [['--listen', '127.0.0.1:9000', '--rack', 'a b'], /--rack/],
    [['--listen', '127.0.0.1:9000', '--wire', 'none'], /--wire/],
  ] as const) {
    const { code, errors } = await webdfs('node', ...etcd, ...words);
    assert.equal(code, EXIT.USAGE, errors);
    assert.match(errors, says);
  }
});
