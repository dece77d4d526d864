import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, concat, EMPTY, fromUtf8, silentLog, utf8 } from '@webdfs/base';
import { Asked } from './asked.ts';
import { Lane } from './lane.ts';
import { LIMITS } from './limits.ts';
import { OutgoingBody } from './outgoing.ts';
import { PackPool } from './packer.ts';
import type { Pipe } from './pipe.ts';
import { Session } from './session.ts';
import { SlabPool } from './slabs.ts';
import type { Role } from './stream-host.ts';
import type { Handlers } from './transport.ts';
import { TurnClock, HANDLERS, GREETING, hello, deadline, code, watch, pieceOf } from './testing.ts';

/** Two sessions joined by pipes that lose everything after so many bytes, the end included. */
function joined(
  role: Role,
  handlers: Partial<Handlers>,
  cutAfter: number,
): {
  clock: TurnClock;
  asker: Session;
  slabs: SlabPool;
  moved: () => number;
} {
  const clock = new TurnClock();
  const limits = LIMITS;
  const slabs = new SlabPool({ slabs: 4, copiedBytes: 1 << 20, poison: true });
  const packs = new PackPool();
  const laneOf = (receives: boolean): Lane =>
    new Lane(GREETING, receives ? { clock, limits, packs, slabs } : { clock, limits, packs });
  const other: Role = role === 'messages' ? 'messages' : role === 'reader' ? 'writer' : 'reader';
  const lanes = [laneOf(role === 'reader'), laneOf(other === 'reader')] as const;
  let moved = 0;
  const pipeTo = (target: Lane): Pipe => ({
    queued: 0,
    write: (buffers, left) => {
      const bytes = concat(buffers);
      const passes = bytes.subarray(0, Math.max(0, cutAfter - moved));
      moved += bytes.length;
      queueMicrotask(() => {
        const space = target.space?.();
        space?.set(passes);
        target.received(space === undefined ? passes : space.subarray(0, passes.length));
        left();
        if (passes.length < bytes.length) for (const lane of lanes) lane.ended('cut');
      });
    },
    resume: () => undefined,
    end: () => undefined,
    destroy: () => undefined,
    exporter: () => EMPTY,
  });
  const sessions = ([role, other] as const).map((role, i) => {
    const session = new Session(lanes[i]!, {
      role,
      dialled: role === 'reader' || (role === 'messages' && i === 0),
      peer: asNodeId(i + 1),
      peerWindow: LIMITS.window,
      handlers: { ...HANDLERS, ...handlers },
      clock,
      limits,
      log: silentLog,
      onClosed: () => undefined,
    });
    lanes[i]!.attach(pipeTo(lanes[1 - i]!));
    lanes[i]!.trust(session);
    return session;
  });
  return { clock, asker: sessions[0]!, slabs, moved: () => moved };
}

async function settle(clock: TurnClock, outcome: { value?: unknown; error?: unknown }): Promise<void> {
  for (let i = 0; i < 200 && outcome.value === undefined && outcome.error === undefined; i++) {
    clock.turn();
    await new Promise(setImmediate);
  }
}

test('a connection cut after any byte of a call: answered rightly or PEER_LOST, worked on at most once', async () => {
  let whole = Infinity;
  for (let cut = 0; cut <= whole; cut++) {
    let worked = 0;
    const { clock, asker, moved } = joined(
      'messages',
      {
        call: (_verb, message) => {
          worked++;
          return { head: message.head, attached: [utf8('attached to the answer')] };
        },
      },
      cut,
    );
    const outcome = watch(asker.call(1, { head: utf8('echo'), attached: [utf8('attached')] }, deadline));
    await settle(clock, outcome);
    assert.ok(worked <= 1);
    if (outcome.value !== undefined) {
      assert.equal(fromUtf8(outcome.value.head), 'echo');
      whole = Math.min(whole, moved());
    } else assert.ok(code('PEER_LOST')(outcome.error), `cut after ${cut}`);
  }
  assert.ok(whole > 90);
});

test('a connection cut after any byte of a body: whole or failed at both ends, and every piece released', async () => {
  const bytes = utf8('the bytes of a body, in two frames');
  let whole = Infinity;
  for (let cut = 0; cut <= whole; cut++) {
    let got: string | undefined;
    const { clock, asker, slabs, moved } = joined(
      'writer',
      {
        receive: async (_verb, _message, body) => {
          const parts: Uint8Array[] = [];
          while (!body.ended) {
            const piece = body.take();
            if (piece === undefined) await body.ready();
            else {
              parts.push(piece.bytes.slice());
              piece.release();
            }
          }
          got = fromUtf8(concat(parts));
          return hello('done');
        },
      },
      cut,
    );
    const asked = new Asked({ deadlineMs: 1000 }, 0);
    const outcome = watch(asked.answer);
    const body = new OutgoingBody(LIMITS, () => undefined);
    asked.outgoing = body;
    let released = 0;
    asker.open(1, hello('head'), asked);
    body.write(pieceOf(bytes.subarray(0, 20), () => released++));
    body.write(pieceOf(bytes.subarray(20), () => released++));
    body.end();
    await settle(clock, outcome);
    if (got !== undefined) assert.equal(got, fromUtf8(bytes));
    if (outcome.value !== undefined) {
      assert.equal(got, fromUtf8(bytes));
      whole = Math.min(whole, moved());
    } else assert.ok(code('PEER_LOST')(outcome.error), `cut after ${cut}`);
    assert.equal(released, 2);
    assert.equal(slabs.lent, 0);
  }
  assert.ok(whole > 100);
});
