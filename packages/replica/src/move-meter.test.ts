import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '@webdfs/base';
import { MoveMeter } from './move-meter.ts';

test('the fastest rate is that of three seconds without a pause; a pause begins them anew', () => {
  const clock = new ManualClock();
  const meter = new MoveMeter(clock);
  const flow = (seconds: number, bytesPerSecond: number): void => {
    for (let i = 0; i < seconds * 4; i++) {
      clock.advance(250);
      meter.received(bytesPerSecond / 4);
    }
  };
  flow(2, 4_000);
  clock.advance(5_000);
  flow(2, 4_000);
  assert.equal(meter.status().fastestReceive, 0, 'two seconds prove nothing');
  flow(3, 4_000);
  assert.equal(meter.status().fastestReceive, 4_000);
  clock.advance(5_000);
  flow(8, 1_000);
  assert.equal(meter.status().fastestReceive, 4_000, 'a slower time does not make it less');
  assert.equal(meter.status().receivedBytes, 36_000);
  assert.equal(meter.status().sentBytes, 0);
});

test('a device is as fast as it is while somebody waits for it, however many wait', async () => {
  const clock = new ManualClock();
  const meter = new MoveMeter(clock);
  for (let i = 0; i < 10; i++) {
    const doors = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const work = doors.map(({ promise }) => meter.read(500, () => promise));
    clock.advance(50);
    doors[0]!.resolve();
    clock.advance(50);
    doors[1]!.resolve();
    await Promise.all(work);
    clock.advance(900);
  }
  assert.equal(meter.status().readPerSecond, 10_000);
  assert.equal(meter.status().writePerSecond, 0);
});
