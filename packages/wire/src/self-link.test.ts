import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, ManualClock, silentLog, WebdfsError } from '@webdfs/base';
import { LIMITS } from './limits.ts';
import { SelfLink } from './self-link.ts';
import type { Handlers, Piece } from './transport.ts';

const NOTHING = { head: new Uint8Array(0), attached: [] };
const refusing = (): never => {
  throw new WebdfsError('UNSUPPORTED', 'not expected');
};

test('a node passes itself pieces as they are, whole and without a copy, and gets them back', async () => {
  const bytes = new Uint8Array(4 * LIMITS.frameBytes);
  let released = 0;
  const piece: Piece = { bytes, hold: refusing, release: () => void released++ };
  const handlers: Handlers = {
    call: refusing,
    post: refusing,
    receive: refusing,
    serve: async (_verb, _message, body) => {
      body.write(piece);
      body.end();
      return NOTHING;
    },
  };
  const link = new SelfLink(asNodeId(1), { handlers, clock: new ManualClock(), limits: LIMITS, log: silentLog });
  const { body, answer } = link.fetch(9, NOTHING, { deadlineMs: 1_000 });
  await body.ready();
  const got = body.take();
  assert.equal(got?.bytes, bytes);
  assert.equal(released, 0);
  got?.release();
  assert.equal(released, 1);
  await answer;
  assert.ok(body.ended);
});
