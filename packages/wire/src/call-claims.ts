import assert from 'node:assert/strict';
import { EMPTY, fromUtf8, utf8, WebdfsError } from '@webdfs/base';
import { gate, type LinkClaim, message, ONE, rejectsWith, textOf, TWO } from './claim.ts';
import { LIMITS } from './limits.ts';
import { type CallContext, type Message, NO_ATTACHMENT } from './transport.ts';

/** What calls and posts promise. */
export const CALL_CLAIMS: readonly LinkClaim[] = [
  {
    name: 'a call carries head and attached buffers of every size there and back',
    check: async (t, pair, linkOf) => {
      await using nodes = await pair(t, {
        call: (verb, { head, attached }) => ({ head: Uint8Array.of(verb, ...head), attached }),
      });
      for (const sizes of [[], [0], [1, 0, 1024], [1025, 3], [65_536, 65_537, 7], [900_000]]) {
        const attached = sizes.map((size, i) => new Uint8Array(size).fill(i + 1));
        const answer = await nodes.settle(
          linkOf(nodes).call(200, { head: utf8('head'), attached }, { deadlineMs: 5000 }),
        );
        assert.deepEqual([...answer.head], [200, ...utf8('head')]);
        assert.deepEqual(
          answer.attached.map((part) => part.length),
          sizes,
        );
        assert.ok(answer.attached.every((part, i) => part.every((byte) => byte === i + 1)));
      }
    },
  },
  {
    name: 'an error keeps code, message, details and when to retry',
    check: async (t, pair, linkOf) => {
      await using nodes = await pair(t, {
        call: () => {
          throw new WebdfsError('NOT_PRIMARY', 'ask node 3', {
            details: { node: 3, sure: true, why: 'ü' },
            retryAfterMs: 40,
          });
        },
      });
      await assert.rejects(nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 5000 })), (error) => {
        assert.ok(error instanceof WebdfsError);
        assert.equal(error.code, 'NOT_PRIMARY');
        assert.equal(error.message, 'ask node 3');
        assert.deepEqual(error.details, { node: 3, sure: true, why: 'ü' });
        assert.equal(error.retryAfterMs, 40);
        return true;
      });
    },
  },
  {
    name: 'a handler that breaks is UNAVAILABLE to the asker',
    check: async (t, pair, linkOf) => {
      await using nodes = await pair(t, {
        call: () => Promise.reject(new TypeError('no such property')),
      });
      await assert.rejects(
        nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 5000 })),
        rejectsWith('UNAVAILABLE'),
      );
    },
  },
  {
    name: 'posts arrive in order, each once',
    check: async (t, pair, linkOf) => {
      const seen: string[] = [];
      await using nodes = await pair(t, { post: (_verb, post) => void seen.push(textOf(post)) });
      const sent = Array.from({ length: 500 }, (_, i) => String(i));
      for (const text of sent) {
        assert.equal(linkOf(nodes).post(9, message(text, new Uint8Array(Number(text) * 5))), true);
        if (Number(text) % 100 === 0) await nodes.network.step();
      }
      await nodes.until(() => seen.length >= sent.length);
      assert.deepEqual(seen, sent);
    },
  },
  {
    name: 'a deadline that passed ends the call at both ends',
    check: async (t, pair, linkOf) => {
      const aborted = gate<unknown>();
      await using nodes = await pair(t, {
        call: (_verb, _message, { signal }) =>
          new Promise(() => signal.addEventListener('abort', () => aborted.open(signal.reason))),
      });
      await assert.rejects(
        nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 30 })),
        rejectsWith('TIMEOUT'),
      );
      const reason = await nodes.settle(aborted.promise);
      assert.ok(reason instanceof WebdfsError);
    },
  },
  {
    name: 'the handler learns who asks and how many milliseconds are left',
    check: async (t, pair, linkOf) => {
      const contexts: CallContext[] = [];
      await using nodes = await pair(t, {
        call: (_verb, _message, context) => {
          contexts.push(context);
          return message('');
        },
      });
      await nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 5000, trace: 2 ** 50 + 3 }));
      assert.equal(contexts.length, 1);
      assert.ok(contexts[0]!.deadlineMs <= 5000 && contexts[0]!.deadlineMs > 0);
      assert.equal(contexts[0]!.trace, 2 ** 50 + 3);
      assert.ok([ONE, TWO].includes(contexts[0]!.from));
    },
  },
  {
    name: 'an asker that gives up is CANCELLED, and the handler is told',
    check: async (t, pair, linkOf) => {
      const started = gate();
      const aborted = gate();
      await using nodes = await pair(t, {
        call: (verb, _message, { signal }) => {
          if (verb === 2) return message('alive');
          started.open();
          return new Promise(() => signal.addEventListener('abort', () => aborted.open()));
        },
      });
      const controller = new AbortController();
      const call = linkOf(nodes).call(1, message(''), { deadlineMs: 5000, signal: controller.signal });
      await nodes.settle(started.promise);
      controller.abort();
      await assert.rejects(nodes.settle(call), rejectsWith('CANCELLED'));
      await nodes.settle(aborted.promise);
      // Giving up before the start, and after the answer, is harmless.
      await assert.rejects(
        linkOf(nodes).call(1, message(''), { deadlineMs: 5000, signal: controller.signal }),
        rejectsWith('CANCELLED'),
      );
      const late = new AbortController();
      const answer = await nodes.settle(linkOf(nodes).call(2, message(''), { deadlineMs: 5000, signal: late.signal }));
      late.abort();
      assert.equal(textOf(answer), 'alive');
      assert.equal(textOf(await nodes.settle(linkOf(nodes).call(2, message(''), { deadlineMs: 5000 }))), 'alive');
    },
  },
  {
    name: 'MAX_CALLS calls run, one more is BUSY at once',
    check: async (t, pair, linkOf) => {
      const hold = gate();
      await using nodes = await pair(t, { call: () => hold.promise.then(() => message('done')) }, { maxCalls: 5 });
      const link = linkOf(nodes);
      const calls = Array.from({ length: 5 }, () => link.call(1, message(''), { deadlineMs: 5000 }));
      await assert.rejects(link.call(1, message(''), { deadlineMs: 5000 }), rejectsWith('BUSY'));
      hold.open();
      for (const call of calls) assert.equal(textOf(await nodes.settle(call)), 'done');
      assert.equal(textOf(await nodes.settle(link.call(1, message(''), { deadlineMs: 5000 }))), 'done');
    },
  },
  {
    name: 'MAX_DEADLINE_MS is granted, a millisecond more is INVALID',
    check: async (t, pair, linkOf) => {
      await using nodes = await pair(t, { call: () => message('in time') });
      const link = linkOf(nodes);
      const most = LIMITS.maxDeadlineMs;
      assert.equal(textOf(await nodes.settle(link.call(1, message(''), { deadlineMs: most }))), 'in time');
      for (const deadlineMs of [most + 1, 0, -1, NaN, Infinity]) {
        await assert.rejects(link.call(1, message(''), { deadlineMs }), rejectsWith('INVALID'));
        await assert.rejects(link.send(1, message(''), { deadlineMs }).answer, rejectsWith('INVALID'));
      }
    },
  },
  {
    name: 'a message at its limits passes, one beyond is TOO_LARGE in either direction',
    check: async (t, pair, linkOf) => {
      await using nodes = await pair(t, {
        call: (_verb, { head }) => ({ head: EMPTY, attached: [new Uint8Array(Number(fromUtf8(head)))] }),
        post: () => undefined,
      });
      const link = linkOf(nodes);
      const ask = async (message: Message): Promise<Message> =>
        await nodes.settle(link.call(1, message, { deadlineMs: 5000 }));
      const padded = (bytes: number): Uint8Array => utf8('0'.padStart(bytes, ' '));
      const { maxHead, maxFrame, maxAttached } = LIMITS;
      await ask({ head: padded(maxHead - 20), attached: NO_ATTACHMENT });
      await assert.rejects(ask({ head: padded(maxHead - 19), attached: NO_ATTACHMENT }), rejectsWith('TOO_LARGE'));
      await ask({ head: utf8('0'), attached: [new Uint8Array(maxFrame - 25)] });
      await assert.rejects(
        ask({ head: utf8('0'), attached: [new Uint8Array(maxFrame - 24)] }),
        rejectsWith('TOO_LARGE'),
      );
      const many = Array.from({ length: maxAttached }, () => Uint8Array.of(1));
      await ask({ head: utf8('0'), attached: many });
      await assert.rejects(ask({ head: utf8('0'), attached: [...many, EMPTY] }), rejectsWith('TOO_LARGE'));
      assert.equal((await ask(message(String(maxFrame - 8)))).attached[0]!.length, maxFrame - 8);
      await assert.rejects(ask(message(String(maxFrame - 7))), rejectsWith('TOO_LARGE'));
      assert.throws(() => link.post(1, { head: new Uint8Array(maxHead), attached: [] }), rejectsWith('TOO_LARGE'));
    },
  },
];
