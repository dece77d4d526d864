import { ManualClock, type NodeId } from '@webdfs/base';
import { testTransport } from './conformance.ts';
import { MemoryNetwork } from './memory-network.ts';
import type { NodeTransport } from './node-transport.ts';

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
