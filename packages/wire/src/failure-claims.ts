import assert from 'node:assert/strict';
import { SeededRandom, WebdfsError } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import {
  message,
  type NetworkClaim,
  NO_HANDLERS,
  ONE,
  Pair,
  readAll,
  rejectsWith,
  TEST_LIMITS,
  textOf,
  THREE,
  TWO,
  writeAll,
} from './claim.ts';
import { type Transport } from './transport.ts';

/** What holds while connections are cut, peers fall silent and nodes come and go. */
export const FAILURE_CLAIMS: readonly NetworkClaim[] = [
  {
    name: 'a call is answered once or fails once, and is worked on at most once, whatever is cut when',
    check: async (t, pair) => {
      const random = new SeededRandom(seedOf(t));
      const worked = new Map<string, number>();
      await using nodes = await pair(t, {
        call: async (_verb, request) => {
          const name = textOf(request);
          worked.set(name, (worked.get(name) ?? 0) + 1);
          if (random.below(2) === 0) await nodes.network.step();
          return request;
        },
      });
      const outcomes = new Map<string, string>();
      let drops = 0;
      for (let i = 0; i < 300; i++) {
        const [from, to] = random.below(2) === 0 ? [nodes.one, TWO] : [nodes.two, ONE];
        const name = `call ${i}`;
        const size = random.below(4) === 0 ? random.below(300_000) : random.below(3000);
        from
          .link(to)
          .call(1, message(name, new Uint8Array(size)), { deadlineMs: 5000 })
          .then(
            (answer) => {
              assert.equal(textOf(answer), name, 'an answer never reaches another call');
              assert.equal(answer.attached[0]!.length, size);
              assert.equal(outcomes.has(name), false);
              outcomes.set(name, 'answered');
            },
            (error: WebdfsError) => {
              assert.equal(outcomes.has(name), false);
              outcomes.set(name, error.code);
            },
          );
        if (random.below(5) === 0) await nodes.network.step();
        if (random.below(60) === 0) {
          drops++;
          nodes.network.drop(ONE, TWO);
        }
        if (random.below(40) === 0) await nodes.met();
      }
      await nodes.until(() => outcomes.size === 300);
      assert.deepEqual(
        [...new Set(outcomes.values())].filter((code) => code !== 'answered' && code !== 'PEER_LOST'),
        [],
      );
      assert.ok([...worked.values()].every((count) => count === 1));
      for (const [name, outcome] of outcomes) if (outcome === 'answered') assert.equal(worked.get(name), 1);
      t.diagnostic(`${drops} drops`);
    },
  },
  {
    name: 'posts may be lost with the link, but are never reordered or doubled',
    check: async (t, pair) => {
      const random = new SeededRandom(seedOf(t));
      const seen: number[] = [];
      await using nodes = await pair(t, { post: (_verb, post) => void seen.push(Number(textOf(post))) });
      for (let i = 0; i < 400; i++) {
        nodes.one.link(TWO).post(1, message(String(i), new Uint8Array(random.below(20_000))));
        if (random.below(10) === 0) await nodes.network.step();
        if (random.below(80) === 0) nodes.network.drop(ONE, TWO);
        if (random.below(40) === 0) await nodes.met();
      }
      // A connection that was cut may not know it yet: what is posted on it is lost.
      let last = 400;
      await nodes.until(() => {
        nodes.one.link(TWO).post(1, message(String(last++)));
        return (seen.at(-1) ?? 0) >= 400;
      });
      assert.ok(seen.every((number, i) => i === 0 || number > seen[i - 1]!));
    },
  },
  {
    name: 'a body is delivered whole or fails, whatever is cut when',
    check: async (t, pair) => {
      const random = new SeededRandom(seedOf(t));
      const bytes = random.bytes(1_500_000);
      let wrong = 0;
      await using nodes = await pair(t, {
        receive: async (_verb, _message, body) => {
          const got = await readAll(body);
          if (Buffer.compare(got, bytes) !== 0) wrong++;
          return message('whole');
        },
        serve: async (_verb, _message, body) => {
          await writeAll(body, bytes, new SeededRandom(1));
          return message('whole');
        },
      });
      const outcomes: string[] = [];
      const note = (outcome: Promise<unknown>): void => {
        outcome.then(
          () => outcomes.push('whole'),
          (error: WebdfsError) => outcomes.push(error.code),
        );
      };
      for (let i = 0; i < 30; i++) {
        await nodes.met();
        const [from, to] = random.below(2) === 0 ? [nodes.one, TWO] : [nodes.two, ONE];
        if (random.below(2) === 0) {
          const { body, answer } = from.link(to).send(1, message(''), { deadlineMs: 30_000 });
          writeAll(body, bytes, new SeededRandom(i)).catch(() => undefined);
          note(answer);
        } else {
          const { body, answer } = from.link(to).fetch(1, message(''), { deadlineMs: 30_000 });
          note(
            readAll(body).then(async (got) => {
              if (Buffer.compare(got, bytes) !== 0) wrong++;
              return await answer;
            }),
          );
        }
        for (let steps = random.below(8); steps > 0; steps--) await nodes.network.step();
        if (random.below(3) === 0) nodes.network.drop(ONE, TWO);
      }
      await nodes.until(() => outcomes.length === 30);
      assert.equal(wrong, 0);
      assert.deepEqual(
        outcomes.filter((outcome) => outcome !== 'whole' && outcome !== 'PEER_LOST'),
        [],
      );
      t.diagnostic(`${outcomes.filter((outcome) => outcome === 'whole').length} of 30 whole`);
    },
  },
  {
    name: 'eight bodies progress alike',
    check: async (t, pair) => {
      const size = 3_000_000;
      const progress = new Map<string, number>();
      let slowest = Infinity;
      await using nodes = await pair(t, {
        receive: async (_verb, request, body) => {
          const name = textOf(request);
          let count = 0;
          while (!body.ended) {
            const piece = body.take();
            if (piece === undefined) {
              await body.ready();
              continue;
            }
            count += piece.bytes.length;
            progress.set(name, count);
            piece.release();
          }
          slowest = Math.min(slowest, ...progress.values());
          return message('');
        },
      });
      const names = Array.from({ length: 8 }, (_, i) => String(i));
      for (const name of names) progress.set(name, 0);
      const answers = names.map((name) => {
        const { body, answer } = nodes.one.link(TWO).send(1, message(name), { deadlineMs: 30_000 });
        writeAll(body, new Uint8Array(size), new SeededRandom(1), 100_000).catch(() => undefined);
        return answer;
      });
      await nodes.settle(Promise.all(answers));
      assert.ok(slowest >= size / 2, `the slowest had ${slowest} bytes when the first was done`);
    },
  },
  {
    name: "the next hop's failure reaches the first sender",
    check: async (t, pair, openNetwork) => {
      const network = await openNetwork(t, TEST_LIMITS);
      const one = await network.open(ONE, NO_HANDLERS);
      const two: Transport = await network.open(TWO, {
        ...NO_HANDLERS,
        // Passes the body on, piece by piece, without copying.
        receive: async (_verb, head, body, { deadlineMs }) => {
          const next = two.link(THREE).send(1, head, { deadlineMs });
          while (!body.ended) {
            const piece = body.take();
            if (piece === undefined) await Promise.race([body.ready(), next.answer]);
            else if (!next.body.write(piece)) await next.body.ready();
          }
          next.body.end();
          return await next.answer;
        },
      });
      let taken = 0;
      await network.open(THREE, {
        ...NO_HANDLERS,
        receive: async (_verb, head, body) => {
          for (;;) {
            const piece = body.take();
            taken += piece?.bytes.length ?? 0;
            piece?.release();
            if (textOf(head) === 'fail' && taken > 500_000) throw new WebdfsError('DISK_FAILED', 'third');
            if (body.ended) return message(String(taken));
            if (piece === undefined) await body.ready();
          }
        },
      });
      network.meet();
      await using nodes = new Pair(network, one, two);
      await nodes.until(() => one.alive(TWO) && two.alive(THREE));
      const whole = one.link(TWO).send(1, message('pass'), { deadlineMs: 20_000 });
      await nodes.settle(writeAll(whole.body, new Uint8Array(2_500_000), new SeededRandom(1)));
      assert.equal(textOf(await nodes.settle(whole.answer)), '2500000');
      taken = 0;
      const broken = one.link(TWO).send(1, message('fail'), { deadlineMs: 20_000 });
      await assert.rejects(
        nodes.settle(writeAll(broken.body, new Uint8Array(30_000_000), new SeededRandom(1))),
        rejectsWith('DISK_FAILED'),
      );
      await assert.rejects(nodes.settle(broken.answer), rejectsWith('DISK_FAILED'));
    },
  },
  {
    name: 'a silent peer is declared lost, what was asked of it fails, and it is found again',
    check: async (t, pair) => {
      const changes: string[] = [];
      let worked = 0;
      await using nodes = await pair(t, {
        call: (verb) => {
          worked++;
          return verb === 1 ? new Promise(() => undefined) : message('back');
        },
      });
      nodes.one.onChange((node, alive) => changes.push(`${node} ${alive}`));
      const call = nodes.one.link(TWO).call(1, message(''), { deadlineMs: 60_000 });
      await nodes.until(() => worked === 1);
      nodes.network.partition(ONE, TWO);
      await assert.rejects(nodes.settle(call), rejectsWith('PEER_LOST'));
      assert.equal(nodes.one.alive(TWO), false);
      await assert.rejects(nodes.one.link(TWO).call(1, message(''), { deadlineMs: 5000 }), rejectsWith('PEER_LOST'));
      assert.equal(nodes.one.link(TWO).post(1, message('')), false);
      const body = nodes.one.link(TWO).fetch(1, message(''), { deadlineMs: 5000 });
      await assert.rejects(body.answer, rejectsWith('PEER_LOST'));
      await assert.rejects(body.body.ready(), rejectsWith('PEER_LOST'));
      await nodes.until(() => !nodes.two.alive(ONE));
      nodes.network.heal(ONE, TWO);
      await nodes.met();
      assert.equal(textOf(await nodes.settle(nodes.one.link(TWO).call(2, message(''), { deadlineMs: 5000 }))), 'back');
      assert.deepEqual(changes, ['2 false', '2 true']);
    },
  },
  {
    name: 'an idle link stays up',
    check: async (t, pair) => {
      const changes: string[] = [];
      await using nodes = await pair(t, { call: () => message('there') }, { pingAfterMs: 20, silenceMs: 2000 });
      nodes.one.onChange((node, alive) => changes.push(`${node} ${alive}`));
      nodes.two.onChange((node, alive) => changes.push(`${node} ${alive}`));
      for (let i = 0; i < 100; i++) await nodes.network.step();
      assert.equal(textOf(await nodes.settle(nodes.two.link(ONE).call(2, message(''), { deadlineMs: 5000 }))), 'there');
      assert.deepEqual(changes, []);
    },
  },
  {
    name: 'a peer that went and came back answers new calls, not old ones',
    check: async (t, pair) => {
      await using nodes = await pair(t, { call: () => new Promise(() => undefined) });
      const old = nodes.one.link(TWO).call(1, message(''), { deadlineMs: 60_000 });
      const failed = assert.rejects(nodes.settle(old), rejectsWith('PEER_LOST'));
      await nodes.two[Symbol.asyncDispose]();
      await failed;
      const again = await nodes.network.open(TWO, { ...NO_HANDLERS, call: () => message('new') });
      nodes.network.meet();
      await nodes.until(() => nodes.one.alive(TWO) && again.alive(ONE));
      assert.equal(textOf(await nodes.settle(nodes.one.link(TWO).call(1, message(''), { deadlineMs: 5000 }))), 'new');
    },
  },
  {
    name: 'a node left out of the peers is let go at once',
    check: async (t, pair) => {
      await using nodes = await pair(t, { call: () => new Promise(() => undefined) });
      const call = nodes.one.link(TWO).call(1, message(''), { deadlineMs: 60_000 });
      nodes.one.setPeers(new Map());
      await assert.rejects(call, rejectsWith('PEER_LOST'));
      assert.equal(nodes.one.alive(TWO), false);
      await nodes.until(() => !nodes.two.alive(ONE));
    },
  },
  {
    name: 'a closed transport fails everything with PEER_LOST, also to itself',
    check: async (t, pair) => {
      await using nodes = await pair(t, { call: () => new Promise(() => undefined) });
      const [far, near] = [nodes.one.link(TWO), nodes.one.link(ONE)];
      const failed = [far, near].map((link) =>
        assert.rejects(link.call(1, message(''), { deadlineMs: 60_000 }), rejectsWith('PEER_LOST')),
      );
      await nodes.one[Symbol.asyncDispose]();
      await Promise.all(failed);
      for (const link of [far, near]) {
        await assert.rejects(link.call(1, message(''), { deadlineMs: 5000 }), rejectsWith('PEER_LOST'));
        assert.equal(link.post(1, message('')), false);
      }
    },
  },
  {
    name: 'MAX_QUEUED bounds what waits for a peer that does not read',
    check: async (t, pair) => {
      await using nodes = await pair(
        t,
        { post: () => undefined, call: () => message('') },
        { maxQueued: 300_000, silenceMs: 60_000 },
      );
      nodes.network.partition(ONE, TWO);
      const link = nodes.one.link(TWO);
      let sent = 0;
      // What the kernels on the way take is not ours to bound.
      for (let i = 0; i < 2000 && link.post(1, message('', new Uint8Array(100_000))); i++) {
        sent++;
        if (sent % 8 === 0) await nodes.network.step();
      }
      assert.ok(sent < 2000, 'posts are refused in the end');
      await assert.rejects(link.call(1, message(''), { deadlineMs: 5000 }), rejectsWith('BUSY'));
      nodes.network.heal(ONE, TWO);
      await nodes.until(() => link.post(1, message('')));
      await nodes.settle(link.call(1, message(''), { deadlineMs: 20_000 }));
    },
  },
  {
    name: 'closing does not wait for a peer that does not read',
    check: async (t, pair) => {
      await using nodes = await pair(t, { post: () => undefined }, { maxQueued: 300_000, silenceMs: 60_000 });
      nodes.network.partition(ONE, TWO);
      for (let i = 0; i < 2000 && nodes.one.link(TWO).post(1, message('', new Uint8Array(100_000))); i++) {
        if (i % 8 === 0) await nodes.network.step();
      }
      await nodes.settle(Promise.resolve(nodes.one[Symbol.asyncDispose]()));
    },
  },
];
