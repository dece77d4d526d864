import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, silentLog, WebdfsError } from '@webdfs/base';
import { UpkeepLoop } from './upkeep-loop.ts';

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
}

test('the loop rewrites while there is something to rewrite, looks again after idling, and ends when it is stopped', async () => {
  const clock = new ManualClock();
  let todo = 3;
  let looks = 0;
  const compact = (): Promise<boolean> => {
    looks += 1;
    return Promise.resolve(todo-- > 0);
  };
  const loop = new UpkeepLoop({ clock, log: silentLog, compact, idleMs: 1000 });
  loop.start();
  clock.advance(999);
  await settle();
  assert.equal(looks, 0);
  clock.advance(1);
  await settle();
  assert.equal(looks, 4);
  clock.advance(1000);
  await settle();
  assert.equal(looks, 5);
  await loop.stop();
  clock.advance(10_000);
  await settle();
  assert.equal(looks, 5);
});

test('an error is tried again, later each time', async () => {
  const clock = new ManualClock();
  const at: number[] = [];
  const compact = (): Promise<boolean> => {
    at.push(clock.monotonic());
    return Promise.reject(new WebdfsError('DISK_FULL', 'full'));
  };
  const loop = new UpkeepLoop({ clock, log: silentLog, compact, idleMs: 1000 });
  loop.start();
  for (let minute = 0; minute < 12; minute++) {
    clock.advance(60_000);
    await settle();
  }
  await loop.stop();
  const pauses = at.slice(1).map((ms, i) => ms - at[i]!);
  assert.ok(
    pauses.every((ms, i) => i === 0 || ms >= pauses[i - 1]!),
    pauses.join(),
  );
  assert.ok(at.length >= 3 && at.length <= 5, `${at.length} tries in 12 minutes`);
});
