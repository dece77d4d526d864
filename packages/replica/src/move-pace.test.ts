import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '@webdfs/base';
import type { LocalMap, MoveLimits } from '@webdfs/cluster';
import { MovePace } from './move-pace.ts';
import { WaitSamples } from './wait-samples.ts';

const MIB = 1_048_576;

/** A node that moves as fast as it may. */
class Mover {
  readonly clock = new ManualClock();
  limits: MoveLimits | undefined;
  fastest = 0;
  readonly pace: MovePace;

  constructor(limits?: MoveLimits) {
    this.limits = limits;
    const view = { map: {} };
    Object.defineProperty(view.map, 'moveLimits', { get: () => this.limits });
    const moves = { status: () => ({ fastestReceive: this.fastest, fastestSend: this.fastest }) };
    const seams = { clock: this.clock, map: { view } as unknown as LocalMap, moves };
    this.pace = new MovePace(seams as unknown as ConstructorParameters<typeof MovePace>[0]);
    this.pace.start();
  }

  /** Bytes that pass in some seconds, at most so many in one; clients wait so long meanwhile. */
  async move(seconds: number, most: number, waitMs?: number): Promise<number> {
    const before = this.pace.intake.bytes;
    const until = this.clock.monotonic() + seconds * 1_000;
    let free = 0;
    const one = async (): Promise<void> => {
      while (this.clock.monotonic() < until) {
        // the device has its own time
        free = Math.max(free, this.clock.monotonic()) + (this.pace.intake.pieceBytes * 1_000) / most;
        const { pieceBytes } = this.pace.intake;
        await new Promise<void>((resolve) => void this.clock.after(free - this.clock.monotonic(), resolve));
        await this.pace.intake.pass(pieceBytes, 'move');
      }
    };
    const streams = [one(), one(), one(), one()];
    while (this.clock.monotonic() < until) {
      for (let i = 0; waitMs !== undefined && i < 5; i++) this.pace.answered('read', waitMs);
      await this.pass(100);
    }
    const bytes = this.pace.intake.bytes - before;
    while (await Promise.race([Promise.all(streams).then(() => false), this.pass(1_000).then(() => true)]));
    return bytes;
  }

  async pass(ms: number): Promise<void> {
    for (let at = 0; at < ms; at += 5) {
      this.clock.advance(5);
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
  }
}

test('a limit of the map is kept, whatever a node could do, and is another within a second', async () => {
  const mover = new Mover({ bytesPerSecond: 20 * MIB });
  const bytes = await mover.move(5, 500 * MIB);
  assert.ok(bytes > 95 * MIB && bytes < 106 * MIB, `${bytes / MIB} MiB`);
  mover.limits = { bytesPerSecond: 5 * MIB };
  await mover.pass(2_000);
  const later = await mover.move(5, 500 * MIB);
  assert.ok(later > 23 * MIB && later < 28 * MIB, `${later / MIB} MiB`);
});

test('what is urgent waits for nothing, and counts', async () => {
  const mover = new Mover({ bytesPerSecond: 1 * MIB });
  for (let i = 0; i < 10; i++) await mover.pace.intake.pass(MIB, 'urgent');
  assert.equal(mover.clock.monotonic(), 0);
  let hasPassed = false;
  void mover.pace.intake.pass(MIB, 'move').then(() => (hasPassed = true));
  await mover.pass(10_500);
  assert.equal(hasPassed, false);
  await mover.pass(1_000);
  assert.equal(hasPassed, true);
});

test('what lacks a copy yields to no client, and to the limits of the map', async () => {
  const mover = new Mover();
  await mover.move(3, 40 * MIB, 1);
  await mover.move(6, 40 * MIB, 60);
  assert.ok(mover.pace.counters().moveRate > 0);
  const before = mover.clock.monotonic();
  for (let i = 0; i < 1_000; i++) await mover.pace.intake.pass(1, 'repair');
  assert.equal(mover.clock.monotonic(), before);

  const limited = new Mover({ bytesPerSecond: MIB });
  let passed = 0;
  void (async () => {
    for (; passed < 4; passed++) await limited.pace.intake.pass(MIB, 'repair');
  })();
  await limited.pass(2_500);
  assert.ok(passed >= 1 && passed <= 3, `${passed}`);
});

test('a share limits it only while there are clients', async () => {
  const mover = new Mover({ share: 0.5 });
  mover.fastest = 40 * MIB;
  const alone = await mover.move(3, 40 * MIB);
  assert.ok(alone > 100 * MIB, `${alone / MIB} MiB`);
  await mover.move(2, 40 * MIB, 1);
  const shared = await mover.move(3, 40 * MIB, 1);
  assert.ok(shared > 50 * MIB && shared < 70 * MIB, `${shared / MIB} MiB`);
});

test('it gives way when clients wait longer than they did before, and takes up speed once they do not', async () => {
  const mover = new Mover();
  await mover.move(3, 40 * MIB, 1);
  assert.equal(mover.pace.counters().moveRate, 0);
  await mover.move(4, 40 * MIB, 60);
  const slow = mover.pace.counters();
  assert.ok(slow.moveRate > 0 && slow.moveRate < 5 * MIB, `${slow.moveRate}`);
  assert.ok(slow.moveSlowdowns >= 3);
  await mover.move(30, 40 * MIB, 1);
  assert.equal(mover.pace.counters().moveRate, 0);
});

test('groups of next to nothing give way as well: each message has its price', async () => {
  const mover = new Mover();
  await mover.move(3, 40 * MIB, 1);
  await mover.move(6, 40 * MIB, 60);
  const until = mover.clock.monotonic() + 1_000;
  let messages = 0;
  const asking = (async () => {
    for (; mover.clock.monotonic() < until; messages++) await mover.pace.intake.pass(1, 'move');
  })();
  await mover.pass(1_500);
  await asking;
  assert.ok(messages > 100 && messages < 1_200, `${messages}`);
});

test('of waits the 95th percentile is told, once there are enough', () => {
  const samples = new WaitSamples();
  for (let i = 1; i <= 15; i++) samples.add('read', i);
  assert.deepEqual(samples.take(), { hasClients: true, waits: new Map() });
  for (let i = 16; i <= 100; i++) samples.add('read', i);
  assert.deepEqual(samples.take().waits.get('read'), 95);
  assert.deepEqual(samples.take(), { hasClients: false, waits: new Map() });
});
