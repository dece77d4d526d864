import { test } from 'node:test';
import { BODY_CLAIMS } from './body-claims.ts';
import { CALL_CLAIMS } from './call-claims.ts';
import { NO_HANDLERS, ONE, type OpenNetwork, type OpenPair, Pair, TEST_LIMITS, TWO } from './claim.ts';
import { FAILURE_CLAIMS } from './failure-claims.ts';
import type { Link } from './transport.ts';

export type { OpenNetwork, TestNetwork } from './claim.ts';

/** Holds a house to everything that `Transport` promises. */
export function testTransport(house: string, openNetwork: OpenNetwork): void {
  /** Nodes one and two that have met; two has the handlers. */
  const pair: OpenPair = async (context, handlers, limits = {}) => {
    const network = await openNetwork(context, { ...TEST_LIMITS, ...limits });
    const both = { ...NO_HANDLERS, ...handlers };
    const one = await network.open(ONE, both);
    const two = await network.open(TWO, both);
    network.meet();
    const met = new Pair(network, one, two);
    await met.met();
    return met;
  };
  const routes: [string, (pair: Pair) => Link][] = [
    ['the dialler of the message lane', (pair) => pair.one.link(TWO)],
    ['its acceptor', (pair) => pair.two.link(ONE)],
    ['a node to itself', (pair) => pair.one.link(ONE)],
  ];

  for (const [route, linkOf] of routes) {
    for (const { name, check } of [...CALL_CLAIMS, ...BODY_CLAIMS]) {
      test(`${house}, ${route}: ${name}`, async (t) => await check(t, pair, linkOf));
    }
  }
  for (const { name, check } of FAILURE_CLAIMS) {
    test(`${house}: ${name}`, async (t) => await check(t, pair, openNetwork));
  }
}
