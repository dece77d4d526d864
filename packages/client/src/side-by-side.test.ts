import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeLog, silentLog } from '@webdfs/base';
import { Background } from './background.ts';
import { eachSideBySide } from './side-by-side.ts';

test('all items are done, never more than the width at once', async () => {
  let running = 0;
  let most = 0;
  const done: number[] = [];
  await eachSideBySide(Array.from({ length: 50 }, (_, i) => i).values(), 4, async (item) => {
    most = Math.max(most, ++running);
    for (let turns = item % 5; turns >= 0; turns--) await Promise.resolve();
    running--;
    done.push(item);
  });
  assert.deepEqual([most, done.length, running], [4, 50, 0]);
});

test('the first failure is thrown once what was under way has ended, and nothing new begins', async () => {
  let begun = 0;
  let ended = 0;
  const work = eachSideBySide([0, 1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    begun++;
    await Promise.resolve();
    if (item === 1) throw new RangeError('one');
    await Promise.resolve();
    ended++;
  });
  await assert.rejects(work, RangeError);
  assert.equal(begun - 1, ended);
  assert.ok(begun <= 5);
});

test('follow-up work that fails is logged, work beyond the limit is left out, and idle waits for the rest', async () => {
  const lines: string[] = [];
  const background = new Background(makeLog({ write: (line) => lines.push(line), now: () => 0 }));
  let done = 0;
  background.start('fails', () => Promise.reject(new Error('no')));
  const gates: (() => void)[] = [];
  for (let i = 0; i < 80; i++) {
    background.start('waits', async () => {
      await new Promise<void>((resolve) => gates.push(resolve));
      done++;
    });
  }
  await Promise.resolve();
  for (const open of gates) open();
  await background.idle();
  assert.equal(done, 63, 'sixty-four at once');
  assert.equal(lines.filter((line) => line.includes('waits')).length, 17);
  assert.equal(lines.filter((line) => line.includes('"no"')).length, 1);
  await new Background(silentLog).idle();
});
