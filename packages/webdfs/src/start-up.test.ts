import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog, systemClock } from '@webdfs/base';
import { NodeProcess } from './node-process.ts';
import { allReady } from './start-up.ts';

/** A process that says something to its supervisor, and ends. */
function saying(message: unknown): NodeProcess {
  return new NodeProcess({
    command: [process.execPath, '--eval', `process.send(${JSON.stringify(message)}, () => process.exit(1))`],
    environment: {},
    clock: systemClock,
    log: silentLog,
    onExit: () => undefined,
  });
}

test('a node that only the operator can help is not started again and again: what it said is thrown', async () => {
  const child = saying({ type: 'failed', code: 'ACCESS_DENIED', message: 'another token' });
  try {
    const signal = new AbortController().signal;
    await assert.rejects(allReady([child], { clock: systemClock, signal }), {
      code: 'ACCESS_DENIED',
      message: 'another token',
    });
    assert.ok(child.deathsBeforeReady <= 1, 'it was not started again');
  } finally {
    await child.stop();
  }
});

test('what a node says that is no message is not believed', async () => {
  const child = saying({ type: 'failed', code: 'NO_SUCH_CODE', message: 'x' });
  try {
    const stop = new AbortController();
    const ready = allReady([child], { clock: systemClock, signal: stop.signal });
    while (child.deathsBeforeReady === 0) await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    await assert.rejects(ready, { code: 'CANCELLED' });
    assert.equal(child.failure, undefined);
  } finally {
    await child.stop();
  }
});
