import assert from 'node:assert/strict';
import { EMPTY, fromUtf8, SeededRandom, WebdfsError } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { gate, type LinkClaim, message, pieceOf, readAll, rejectsWith, textOf, writeAll } from './claim.ts';
import { LIMITS } from './limits.ts';

/** What bodies promise. */
export const BODY_CLAIMS: readonly LinkClaim[] = [
  {
    name: 'a body that is sent arrives in order and whole',
    check: async (t, pair, linkOf) => {
      const random = new SeededRandom(seedOf(t));
      const received: Uint8Array[] = [];
      await using nodes = await pair(t, {
        receive: async (verb, { head }, body) => {
          received.push(await readAll(body));
          return message(`verb ${verb} ${fromUtf8(head)}`);
        },
      });
      for (const size of [0, 1, 65_536, 3_000_017]) {
        const bytes = random.bytes(size);
        const { body, answer } = linkOf(nodes).send(7, message('head'), { deadlineMs: 20_000 });
        await nodes.settle(writeAll(body, bytes, random));
        assert.equal(textOf(await nodes.settle(answer)), 'verb 7 head');
        assert.deepEqual(received.pop(), bytes);
      }
    },
  },
  {
    name: 'a body that is fetched arrives in order and whole, and then its answer',
    check: async (t, pair, linkOf) => {
      const seed = seedOf(t);
      const sizes = [0, 1, 65_536, 3_000_017];
      const bytesOf = (size: number): Uint8Array => new SeededRandom(seed).bytes(size);
      await using nodes = await pair(t, {
        serve: async (_verb, request, body) => {
          await writeAll(body, bytesOf(Number(textOf(request))), new SeededRandom(seed));
          return message('that was all');
        },
      });
      for (const size of sizes) {
        const { body, answer } = linkOf(nodes).fetch(7, message(String(size)), { deadlineMs: 20_000 });
        assert.deepEqual(await nodes.settle(readAll(body)), bytesOf(size));
        assert.equal(textOf(await nodes.settle(answer)), 'that was all');
      }
    },
  },
  {
    name: 'a receiver that takes nothing bounds the sender, and calls still pass',
    check: async (t, pair, linkOf) => {
      const hold = gate();
      await using nodes = await pair(t, {
        call: () => message('passed'),
        receive: async (_verb, _message, body) => {
          await hold.promise;
          return message(String((await readAll(body)).length));
        },
      });
      const { body, answer } = linkOf(nodes).send(7, message(''), { deadlineMs: 20_000 });
      let written = 0;
      let released = 0;
      const write = (): boolean => {
        written += 100_000;
        return body.write(pieceOf(new Uint8Array(100_000), () => (released += 100_000)));
      };
      while (write()) await nodes.network.step();
      let ready = false;
      const waits = body.ready().then(() => (ready = true));
      for (let i = 0; i < 20; i++) await nodes.network.step();
      assert.equal(ready, false, 'no credit is given back for what nobody took');
      assert.ok(written <= LIMITS.window + 100_000, `${written} bytes are under way`);
      assert.equal(textOf(await nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 5000 }))), 'passed');
      hold.open();
      await nodes.settle(waits);
      body.end();
      assert.equal(textOf(await nodes.settle(answer)), String(written));
      await nodes.until(() => released === written);
    },
  },
  {
    name: 'a receiver that fails stops the sender with its error',
    check: async (t, pair, linkOf) => {
      await using nodes = await pair(t, {
        receive: async (_verb, _message, body) => {
          await body.ready();
          body.take()?.release();
          throw new WebdfsError('DISK_FULL', 'no room for a block');
        },
      });
      const { body, answer } = linkOf(nodes).send(7, message(''), { deadlineMs: 20_000 });
      const writing = writeAll(body, new Uint8Array(8_000_000), new SeededRandom(1));
      await assert.rejects(nodes.settle(writing), rejectsWith('DISK_FULL'));
      await assert.rejects(nodes.settle(answer), rejectsWith('DISK_FULL'));
      let released = false;
      assert.equal(body.write(pieceOf(new Uint8Array(1), () => (released = true))), false);
      assert.ok(released, 'a piece written too late is released at once');
    },
  },
  {
    name: 'a sender that gives up fails its receiver, and is told so itself',
    check: async (t, pair, linkOf) => {
      const failed = gate<unknown>();
      const aborted = gate();
      const started = gate();
      await using nodes = await pair(t, {
        receive: async (_verb, _message, body, { signal }) => {
          started.open();
          signal.addEventListener('abort', () => aborted.open());
          await readAll(body).catch(failed.open);
          throw new WebdfsError('CANCELLED', 'the sender gave up');
        },
      });
      const { body, answer } = linkOf(nodes).send(7, message(''), { deadlineMs: 20_000 });
      body.write(pieceOf(new Uint8Array(100_000)));
      await nodes.settle(started.promise);
      body.cancel('the client went away');
      await assert.rejects(nodes.settle(answer), rejectsWith('CANCELLED'));
      await assert.rejects(body.ready(), rejectsWith('CANCELLED'));
      assert.ok(rejectsWith('CANCELLED')(await nodes.settle(failed.promise)));
      await nodes.settle(aborted.promise);
    },
  },
  {
    name: 'a reader that gives up stops whoever serves it',
    check: async (t, pair, linkOf) => {
      const stopped = gate<unknown>();
      await using nodes = await pair(t, {
        serve: async (_verb, _message, body, { signal }) => {
          await writeAll(body, new Uint8Array(20_000_000), new SeededRandom(1)).catch(stopped.open);
          assert.equal(signal.aborted, true);
          return message('');
        },
      });
      const { body, answer } = linkOf(nodes).fetch(7, message(''), { deadlineMs: 20_000 });
      await nodes.settle(body.ready());
      const taken = body.take();
      body.cancel('enough');
      await assert.rejects(nodes.settle(answer), rejectsWith('CANCELLED'));
      assert.equal(body.take(), undefined);
      await assert.rejects(body.ready(), rejectsWith('CANCELLED'));
      assert.ok(rejectsWith('CANCELLED')(await nodes.settle(stopped.promise)));
      taken?.release();
    },
  },
  {
    name: 'a body whose time is over fails with TIMEOUT',
    check: async (t, pair, linkOf) => {
      await using nodes = await pair(t, {
        receive: (_verb, _message, _body, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
        serve: (_verb, _message, _body, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
      });
      const sent = linkOf(nodes).send(7, message(''), { deadlineMs: 30 });
      await assert.rejects(nodes.settle(sent.answer), rejectsWith('TIMEOUT'));
      await assert.rejects(sent.body.ready(), rejectsWith('TIMEOUT'));
      const fetched = linkOf(nodes).fetch(7, message(''), { deadlineMs: 30 });
      await assert.rejects(nodes.settle(fetched.body.ready()), rejectsWith('TIMEOUT'));
      await assert.rejects(nodes.settle(fetched.answer), rejectsWith('TIMEOUT'));
    },
  },
  {
    name: 'MAX_BODIES bodies run, one more is BUSY at once',
    check: async (t, pair, linkOf) => {
      await using nodes = await pair(
        t,
        {
          receive: async (_verb, _message, body) => message(String((await readAll(body)).length)),
          serve: async (_verb, _message, body) => {
            body.write(pieceOf(Uint8Array.of(1)));
            return message('');
          },
        },
        { maxBodies: 3 },
      );
      const link = linkOf(nodes);
      // A first one of each kind, so that the lanes stand.
      await nodes.settle(writeAll(link.send(1, message(''), { deadlineMs: 5000 }).body, EMPTY, new SeededRandom(1)));
      await nodes.settle(readAll(link.fetch(1, message(''), { deadlineMs: 5000 }).body));
      await nodes.until(() => nodes.network.lent() === 0);
      for (let i = 0; i < 5; i++) await nodes.network.step();
      const sent = Array.from({ length: 3 }, () => link.send(1, message(''), { deadlineMs: 5000 }));
      await assert.rejects(link.send(1, message(''), { deadlineMs: 5000 }).answer, rejectsWith('BUSY'));
      for (const { body } of sent) body.end();
      for (const { answer } of sent) assert.equal(textOf(await nodes.settle(answer)), '0');
      const fetched = Array.from({ length: 3 }, () => link.fetch(1, message(''), { deadlineMs: 5000 }));
      const fourth = link.fetch(1, message(''), { deadlineMs: 5000 });
      await assert.rejects(fourth.answer, rejectsWith('BUSY'));
      await assert.rejects(fourth.body.ready(), rejectsWith('BUSY'));
      for (const { body } of fetched) assert.equal((await nodes.settle(readAll(body))).length, 1);
    },
  },
];
