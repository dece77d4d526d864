import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, EMPTY, ManualClock, silentLog, utf8, WebdfsError } from '@webdfs/base';
import { FrameReader, KIND, type Kind, packFrame } from './frame.ts';
import { Lane, type LaneUser } from './lane.ts';
import { LIMITS } from './limits.ts';
import { PeerLink } from './link.ts';
import { PackPool } from './packer.ts';
import { Session } from './session.ts';
import { SlabPool } from './slabs.ts';
import type { Role } from './stream-host.ts';
import type { Handlers } from './transport.ts';

/** What leaves at the end of a turn leaves at once. */
class EagerClock extends ManualClock {
  override soon(action: () => void): void {
    action();
  }
}

const refusing = (): never => {
  throw new WebdfsError('UNSUPPORTED', 'not expected');
};
const HANDLERS: Handlers = { call: refusing, post: refusing, receive: refusing, serve: refusing };
const GREETING: LaneUser = { frame: refusing, data: refusing, fill: () => undefined, closed: () => undefined };
const message = { head: utf8('head'), attached: [] };
const deadline = { deadlineMs: 1000 };

/** A link whose lanes end in the test. */
class LinkHarness {
  readonly clock = new EagerClock();
  readonly changes: boolean[] = [];
  readonly link = new PeerLink({
    peer: asNodeId(7),
    clock: this.clock,
    limits: LIMITS,
    log: silentLog,
    onChange: (alive) => this.changes.push(alive),
  });

  /** A session over a lane that swallows what is sent, and says so. */
  lane(role: Role): { session: Session; sent: Kind[]; hear: () => void; ended: () => string | undefined } {
    const sent: Kind[] = [];
    let ended: string | undefined;
    const reader = new FrameReader({
      frame: (kind) => void sent.push(kind),
      data: () => void sent.push(KIND.DATA),
    });
    reader.trust();
    const { clock } = this;
    const base = { clock, limits: LIMITS, packs: new PackPool() };
    const slabs = new SlabPool({ slabs: 1, copiedBytes: 0 });
    const lane = new Lane(GREETING, role === 'reader' ? { ...base, slabs } : base);
    lane.attach({
      queued: 0,
      write: (buffers, left) => {
        for (const buffer of buffers) reader.push(buffer);
        queueMicrotask(left);
      },
      resume: () => undefined,
      end: () => undefined,
      destroy: () => undefined,
      exporter: () => EMPTY,
    });
    const session: Session = new Session(lane, {
      role,
      dialled: true,
      peer: asNodeId(7),
      peerWindow: LIMITS.window,
      handlers: HANDLERS,
      clock,
      limits: LIMITS,
      log: silentLog,
      onClosed: (cause) => {
        ended = cause;
        if (role === 'messages') this.link.messagesDown(session, cause);
        else this.link.bodiesDown(role, session);
      },
    });
    lane.trust(session);
    const hear = (): void => void lane.received(packFrame(KIND.PONG, 0, new Uint8Array(8), EMPTY));
    return { session, sent, hear, ended: () => ended };
  }
}

function code(expected: string): (error: unknown) => boolean {
  return (error) => error instanceof WebdfsError && error.code === expected;
}

test('PING_AFTER_MS of silence bring one PING, SILENCE_MS end the link, to the millisecond', () => {
  const harness = new LinkHarness();
  const { session, sent, hear } = harness.lane('messages');
  harness.link.messagesUp(session, 'boot');
  harness.clock.advance(LIMITS.pingAfterMs - 1);
  assert.deepEqual(sent, []);
  harness.clock.advance(1);
  assert.deepEqual(sent, [KIND.PING]);
  hear();
  harness.clock.advance(LIMITS.pingAfterMs);
  assert.deepEqual(sent, [KIND.PING, KIND.PING]);
  harness.clock.advance(LIMITS.silenceMs - LIMITS.pingAfterMs - 1);
  assert.deepEqual(harness.changes, [true]);
  assert.deepEqual(sent, [KIND.PING, KIND.PING], 'once is enough');
  harness.clock.advance(1);
  assert.deepEqual(harness.changes, [true, false]);
});

test('a process that was held up reads what has come before it declares a peer lost', () => {
  const harness = new LinkHarness();
  const { session, hear } = harness.lane('messages');
  harness.link.messagesUp(session, 'boot');
  const actions: (() => void)[] = [];
  harness.clock.soon = (action): void => void actions.push(action);
  harness.clock.advance(60_000);
  hear();
  for (const action of actions) action();
  assert.deepEqual(harness.changes, [true]);
});

test('a body that is asked for before its lane stands starts when it does', async () => {
  const harness = new LinkHarness();
  harness.link.messagesUp(harness.lane('messages').session, 'boot');
  const { body, answer } = harness.link.send(1, message, deadline);
  assert.equal(body.write({ bytes: new Uint8Array(10), hold: () => undefined, release: () => undefined }), true);
  const fetched = harness.link.fetch(1, message, deadline);
  const [writer, reader] = [harness.lane('writer'), harness.lane('reader')];
  harness.link.bodiesUp('writer', writer.session, 'boot');
  harness.link.bodiesUp('reader', reader.session, 'boot');
  assert.deepEqual(writer.sent, [KIND.OPEN, KIND.DATA]);
  assert.deepEqual(reader.sent, [KIND.CALL]);
  harness.link.lose('test');
  await assert.rejects(answer, code('PEER_LOST'));
  await assert.rejects(fetched.answer, code('PEER_LOST'));
});

test('a body whose lane never comes is given up at its deadline, or by its caller, or with the link', async () => {
  const harness = new LinkHarness();
  harness.link.messagesUp(harness.lane('messages').session, 'boot');
  const late = harness.link.send(1, message, { deadlineMs: 50 });
  const given = harness.link.fetch(1, message, deadline);
  const lost = harness.link.fetch(1, message, deadline);
  let released = 0;
  late.body.write({ bytes: new Uint8Array(10), hold: () => undefined, release: () => released++ });
  harness.clock.advance(50);
  await assert.rejects(late.answer, code('TIMEOUT'));
  assert.equal(released, 1);
  const waits = given.body.ready();
  given.body.cancel('never mind');
  await assert.rejects(waits, code('CANCELLED'));
  await assert.rejects(given.answer, code('CANCELLED'));
  harness.link.lose('test');
  await assert.rejects(lost.body.ready(), code('PEER_LOST'));
  const writer = harness.lane('writer');
  harness.link.messagesUp(harness.lane('messages').session, 'boot');
  harness.link.bodiesUp('writer', writer.session, 'boot');
  assert.deepEqual(writer.sent, [], 'what was given up does not start');
});

test('MAX_BODIES bodies may wait for their lane, one more is BUSY', async () => {
  const harness = new LinkHarness();
  harness.link.messagesUp(harness.lane('messages').session, 'boot');
  const waiting = Array.from({ length: LIMITS.maxBodies }, () => harness.link.send(1, message, deadline));
  await assert.rejects(harness.link.send(1, message, deadline).answer, code('BUSY'));
  harness.link.lose('test');
  for (const { answer } of waiting) await assert.rejects(answer, code('PEER_LOST'));
});

test('a lane for bodies is used only with the same boot of the peer, whichever comes first', () => {
  const harness = new LinkHarness();
  const early = harness.lane('writer');
  harness.link.bodiesUp('writer', early.session, 'second boot');
  harness.link.messagesUp(harness.lane('messages').session, 'second boot');
  assert.equal(early.ended(), undefined);
  harness.link.send(1, message, deadline);
  assert.deepEqual(early.sent, [KIND.OPEN]);
  const stale = harness.lane('reader');
  harness.link.bodiesUp('reader', stale.session, 'first boot');
  assert.match(stale.ended()!, /another process/);
  const other = harness.lane('writer');
  harness.link.bodiesUp('writer', other.session, 'third boot');
  harness.link.messagesUp(harness.lane('messages').session, 'fourth boot');
  assert.match(other.ended()!, /another process/);
  assert.notEqual(early.ended(), undefined);
});

test('a new message lane replaces the old one, and what was asked over that fails', async () => {
  const harness = new LinkHarness();
  const old = harness.lane('messages');
  harness.link.messagesUp(old.session, 'boot');
  const call = harness.link.call(1, message, deadline);
  harness.link.messagesUp(harness.lane('messages').session, 'boot');
  await assert.rejects(call, code('PEER_LOST'));
  assert.notEqual(old.ended(), undefined);
  assert.equal(harness.link.alive, true);
  assert.deepEqual(harness.changes, [true, false, true]);
});
