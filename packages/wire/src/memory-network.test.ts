import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, ManualClock, type NodeId } from '@webdfs/base';
import { testTransport } from './conformance.ts';
import { MemoryNetwork } from './memory-network.ts';
import type { NodeTransport } from './node-transport.ts';
import type { Handlers, Link } from './transport.ts';

testTransport('memory', async (_context, limits) => {
  const clock = new ManualClock();
  const network = new MemoryNetwork({ clock, limits });
  const nodes = new Map<NodeId, NodeTransport>();
  const all: NodeTransport[] = [];
  return {
    open: async (self, handlers) => {
      const node = network.open(self, handlers);
      nodes.set(self, node);
      all.push(node);
      return node;
    },
    meet: () => {
      const addresses = new Map([...nodes.keys()].map((node) => [node, network.address(node)]));
      for (const node of nodes.values()) node.setPeers(addresses);
    },
    step: async () => {
      await new Promise(setImmediate);
      clock.advance(1);
    },
    drop: (a, b) => network.drop(a, b),
    partition: (a, b) => network.partition(a, b),
    heal: (a, b) => network.heal(a, b),
    lent: () => all.reduce((sum, node) => sum + node.lent, 0),
    [Symbol.asyncDispose]: async () => {
      for (const node of all) await node[Symbol.asyncDispose]();
    },
  };
});

const NO_HANDLERS: Handlers = {
  call: (_verb, message) => message,
  post: () => undefined,
  receive: async (_verb, message, body) => {
    while (!body.ended) {
      const piece = body.take();
      if (piece === undefined) await body.ready();
      else piece.release();
    }
    return message;
  },
  serve: (_verb, message) => Promise.resolve(message),
};

/** Two nodes that have met, and a way to see how long something takes by their clock. */
async function aSlowPair(): Promise<{
  network: MemoryNetwork;
  link: Link;
  took: (work: Promise<unknown>) => Promise<number>;
}> {
  const clock = new ManualClock();
  const network = new MemoryNetwork({ clock });
  const [one, two] = [1, 2].map((node) => network.open(asNodeId(node), NO_HANDLERS));
  for (const node of [one!, two!]) {
    node.setPeers(new Map([one!, two!].map(({ self, address }) => [self, address])));
  }
  const took = async (work: Promise<unknown>): Promise<number> => {
    const before = clock.monotonic();
    let after: number | undefined;
    work.finally(() => (after = clock.monotonic())).catch(() => undefined);
    for (let turn = 0; turn < 20_000; turn++) {
      for (let i = 0; i < 10; i++) await new Promise(setImmediate);
      if (after !== undefined) return after - before;
      clock.advance(1);
    }
    return assert.fail('it never settled');
  };
  const up = new Promise<void>((resolve) => two!.onChange(() => resolve()));
  await took(up);
  return { network, link: one!.link(asNodeId(2)), took };
}

const message = { head: new Uint8Array(8), attached: [] };

test('a delay is the time from writing to arrival, each way', async () => {
  const { network, link, took } = await aSlowPair();
  assert.equal(await took(link.call(1, message, { deadlineMs: 5000 })), 0);
  network.delay(asNodeId(1), asNodeId(2), 40);
  assert.equal(await took(link.call(1, message, { deadlineMs: 5000 })), 80);
});

test('a slow link carries so many bytes a millisecond', async () => {
  const { network, link, took } = await aSlowPair();
  network.slow(asNodeId(1), asNodeId(2), 10_000);
  const large = { head: new Uint8Array(8), attached: [new Uint8Array(500_000)] };
  const ms = await took(link.call(1, large, { deadlineMs: 5000 }));
  assert.ok(ms >= 100 && ms <= 102, `${ms} ms for 500 000 bytes there and back`);
});

test('a one-way partition silences one end only; the other learns by silence', async () => {
  const { network, link, took } = await aSlowPair();
  network.partitionOneWay(asNodeId(2), asNodeId(1));
  const ms = await took(assert.rejects(link.call(1, message, { deadlineMs: 20_000 }), { code: 'PEER_LOST' }));
  assert.equal(ms, 3000);
});

test('the same seed, the same exchange', async () => {
  const run = async (): Promise<number[]> => {
    const { network, link, took } = await aSlowPair();
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      network.drop(asNodeId(1), asNodeId(2));
      times.push(await took(until(link)));
    }
    return times;
  };
  const until = async (link: Link): Promise<void> => {
    while (!link.post(1, message)) await new Promise(setImmediate);
  };
  assert.deepEqual(await run(), await run());
});

test('a node that crashes tells nothing: the others notice a reset, or only silence, and meet the next one in its place', async () => {
  for (const reset of [true, false]) {
    const clock = new ManualClock();
    const network = new MemoryNetwork({ clock });
    const [one, two] = [asNodeId(1), asNodeId(2)];
    const changes: string[] = [];
    const open = (self: NodeId): NodeTransport => {
      const node = network.open(self, NO_HANDLERS);
      node.onChange((peer, alive) => changes.push(`${self}: ${peer} ${alive ? 'up' : 'lost'}`));
      node.setPeers(new Map([one, two].map((each) => [each, network.address(each)])));
      return node;
    };
    const pass = async (ms: number): Promise<void> => {
      for (let i = 0; i < ms / 10; i++) {
        clock.advance(10);
        await new Promise(setImmediate);
      }
    };
    const first = open(one);
    const dead = open(two);
    await pass(500);
    assert.deepEqual(changes.splice(0).toSorted(), ['1: 2 up', '2: 1 up']);
    network.crash(two, { reset });
    await pass(100);
    assert.deepEqual(changes.splice(0), reset ? ['1: 2 lost'] : []);
    if (!reset) await pass(4_000);
    if (!reset) assert.deepEqual(changes.splice(0), ['1: 2 lost', '2: 1 lost']);
    dead.setPeers(new Map());
    changes.length = 0;
    const next = open(two);
    await pass(5_000);
    assert.deepEqual(changes.toSorted(), ['1: 2 up', '2: 1 up']);
    await first[Symbol.asyncDispose]();
    await next[Symbol.asyncDispose]();
  }
});
