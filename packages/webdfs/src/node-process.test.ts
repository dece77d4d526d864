import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

/** A supervisor with nothing else to do, whose node ends at once, three times. */
const SUPERVISOR = `
  import { silentLog, systemClock } from '@webdfs/base';
  import { NodeProcess } from ${JSON.stringify(new URL('node-process.ts', import.meta.url).href)};
  let deaths = 0;
  const node = new NodeProcess({
    command: [process.execPath, '--eval', ''],
    environment: process.env,
    clock: systemClock,
    log: silentLog,
    onExit: () => {
      if (++deaths < 3) return;
      console.log('died three times');
      void node.stop();
    },
  });
`;

test('a supervisor that nothing else keeps alive starts its node again and again, until it is told to stop', async () => {
  const words = ['--conditions=webdfs:source', '--input-type=module', '--eval', SUPERVISOR];
  const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: import.meta.dirname });
  assert.equal(stdout.trim(), 'died three times');
});
