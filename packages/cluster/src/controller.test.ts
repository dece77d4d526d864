import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, type NodeId } from '@webdfs/base';
import { type ControllerEvent, type ControllerState, controllerStep, newController } from './controller.ts';
import { CONTROLLER_KEY } from './keys.ts';
import { aMap, type MapBuilder, type MapOptions } from './model/map-builder.ts';
import { type ClusterParameters, parametersWith } from './parameters.ts';
import { proposeOutAfter } from './retarget.ts';

const parameters = parametersWith();
const GRACE = parameters.graceMs;

/** A controller over a map that it is shown at once. */
class Controlled {
  readonly map: MapBuilder;
  state: ControllerState;
  at = 0;
  readonly purposes: string[] = [];

  readonly parameters: ClusterParameters;

  constructor(options: MapOptions & { readonly parameters?: Partial<ClusterParameters> }) {
    this.map = aMap(options);
    this.parameters = { ...parameters, ...options.parameters };
    const elected = this.map.put(CONTROLLER_KEY, '{"node":1,"session":1}');
    this.state = newController(this.map.snapshot, elected, 0, { parameters: this.parameters });
  }

  feed(event: ControllerEvent): void {
    const { state, effects } = controllerStep(this.state, event, this.parameters);
    this.state = state;
    for (const { id, purpose, transaction } of effects) {
      this.purposes.push(purpose);
      const outcome = this.map.transact(transaction) ? 'done' : 'failed';
      this.feed({ type: 'map', view: this.map.snapshot, at: this.at });
      this.feed({ type: 'outcome', id, outcome, at: this.at });
    }
  }

  /** Time passes, in ticks of half a second. */
  pass(ms: number): void {
    for (let left = ms; left > 0; left -= 500) {
      this.at += Math.min(left, 500);
      this.feed({ type: 'tick', at: this.at });
    }
  }

  show(): void {
    this.feed({ type: 'map', view: this.map.snapshot, at: this.at });
  }

  complain(from: NodeId, about: NodeId, below = false): void {
    this.feed({ type: 'complaint', complaint: { from, about, below }, at: this.at });
  }
}

test('a quiet cluster is left alone', () => {
  const controlled = new Controlled({ nodes: 3 });
  controlled.pass(60_000);
  assert.deepEqual(controlled.purposes, []);
});

test('nobody is judged in the grace after the election, nor after the store was away', () => {
  const controlled = new Controlled({ nodes: 3 });
  controlled.map.dead(asNodeId(2));
  controlled.show();
  controlled.pass(GRACE - 500);
  assert.deepEqual(controlled.purposes, []);
  controlled.feed({ type: 'away', at: controlled.at });
  controlled.pass(GRACE - 500);
  assert.deepEqual(controlled.purposes, []);
  controlled.pass(500);
  assert.deepEqual(controlled.purposes, ['node 2 is lost']);
});

test('after the grace a node without a session is marked as soon as it is seen, and once', () => {
  const controlled = new Controlled({ nodes: 3 });
  controlled.pass(GRACE);
  controlled.map.dead(asNodeId(2));
  controlled.show();
  assert.deepEqual(controlled.purposes, ['node 2 is lost']);
  controlled.pass(60_000);
  assert.equal(controlled.purposes.length, 1);
});

test('a marked node that was taken back somewhere and is lost again is marked again', () => {
  const controlled = new Controlled({ nodes: 3 });
  controlled.pass(GRACE);
  const { map } = controlled;
  const { inSync } = map.view();
  const node = inSync[2]!;
  map.dead(node);
  controlled.show();
  const first = map.snapshot.down(node)!.mark;
  map.live(node);
  map.override({ members: inSync });
  map.dead(node);
  controlled.show();
  assert.deepEqual(map.snapshot.down(node)!.info.earlier, [first]);
  assert.ok(!map.view().inSync.includes(node));
});

test('what the store may or may not have done is looked at after a grace', () => {
  const controlled = new Controlled({ nodes: 4 });
  controlled.pass(GRACE);
  controlled.map.dead(asNodeId(2));
  const planned = controllerStep(
    controlled.state,
    { type: 'map', view: controlled.map.snapshot, at: controlled.at },
    parameters,
  );
  const [effect] = planned.effects;
  const unknown = controllerStep(
    planned.state,
    { type: 'outcome', id: effect!.id, outcome: 'unknown', at: controlled.at },
    parameters,
  );
  assert.deepEqual(unknown.effects, []);
  const later = controllerStep(unknown.state, { type: 'tick', at: controlled.at + GRACE }, parameters);
  assert.equal(later.effects[0]?.purpose, 'node 2 is lost');
});

test('a transaction that failed is not sent again from the same map before the next tick', () => {
  const controlled = new Controlled({ nodes: 3 });
  controlled.pass(GRACE);
  controlled.map.dead(asNodeId(2));
  const old = controlled.map.snapshot;
  controlled.map.live(asNodeId(2));
  controlled.feed({ type: 'map', view: old, at: controlled.at });
  assert.deepEqual(controlled.purposes, ['node 2 is lost']);
  assert.deepEqual(controlled.map.snapshot.marked(), []);
});

test('an accused node that was put back is accused again after a longer wait each time', () => {
  const controlled = new Controlled({ nodes: 2, copies: 2, minCopies: 2 });
  controlled.pass(GRACE);
  const waits: number[] = [];
  for (let i = 0; i < 4; i++) {
    controlled.complain(asNodeId(1), asNodeId(2), true);
    assert.deepEqual(controlled.map.snapshot.marked(), [2]);
    const since = controlled.at;
    while (!controlled.map.view().inSync.includes(asNodeId(2))) controlled.pass(500);
    waits.push(controlled.at - since);
  }
  assert.deepEqual(waits, [2_000, 4_000, 8_000, 16_000]);
});

test('complaints of and about nodes without a session count for nothing', () => {
  const controlled = new Controlled({ nodes: 4 });
  controlled.pass(GRACE);
  controlled.map.dead(asNodeId(4));
  controlled.show();
  controlled.complain(asNodeId(4), asNodeId(1), true);
  controlled.complain(asNodeId(2), asNodeId(9), true);
  assert.deepEqual(controlled.purposes, ['node 4 is lost']);
});

test('a complaint is forgotten in time', () => {
  const controlled = new Controlled({ nodes: 4 });
  controlled.pass(GRACE);
  controlled.complain(asNodeId(1), asNodeId(3));
  controlled.pass(parameters.complaintMs);
  controlled.complain(asNodeId(2), asNodeId(3));
  assert.deepEqual(controlled.purposes, []);
  controlled.complain(asNodeId(1), asNodeId(3));
  assert.deepEqual(controlled.map.snapshot.marked(), [3]);
});

test('a node is written off after long, where that helps, and only while it is away', () => {
  const three = new Controlled({ nodes: 3 });
  const four = new Controlled({ nodes: 4 });
  for (const controlled of [three, four]) {
    controlled.pass(GRACE);
    controlled.map.dead(asNodeId(2));
    controlled.show();
    controlled.pass(parameters.outAfterMs - 500);
    assert.deepEqual(controlled.map.snapshot.map.out, []);
    controlled.pass(1_000);
  }
  assert.deepEqual(three.map.snapshot.map.out, []);
  assert.deepEqual(four.map.snapshot.map.out, [2]);
  four.map.live(asNodeId(2));
  four.show();
  assert.deepEqual(four.map.snapshot.map.out, []);
});

test('when a node is written off is for the map to say, and may be never', () => {
  const controlled = new Controlled({ nodes: 4 });
  controlled.pass(GRACE);
  controlled.map.transact(proposeOutAfter(controlled.map.snapshot, 0));
  controlled.map.dead(asNodeId(2));
  controlled.show();
  controlled.pass(2 * parameters.outAfterMs);
  assert.deepEqual(controlled.map.snapshot.map.out, []);
  controlled.map.transact(proposeOutAfter(controlled.map.snapshot, 3 * parameters.outAfterMs));
  controlled.show();
  controlled.pass(parameters.outAfterMs - 500);
  assert.deepEqual(controlled.map.snapshot.map.out, []);
  controlled.pass(1_000);
  assert.deepEqual(controlled.map.snapshot.map.out, [2]);
});

test('sweeps are paced, and wait until no node is marked', () => {
  const controlled = new Controlled({ nodes: 4, groupBits: 8 });
  const { map } = controlled;
  map.override({ members: map.view().inSync });
  const away = map.snapshot.nodes().find((node) => !map.view().inSync.includes(node))!;
  map.mark(away);
  controlled.show();
  controlled.pass(2_000);
  assert.deepEqual(controlled.purposes, []);
  for (let group = 0; group < 256; group++) {
    const key = { ...map.group, group: group as never };
    const { members } = map.snapshot.group(key);
    if (members.includes(away)) map.put(`group/1/${group}`, JSON.stringify({ members, eligible: [], from: [] }));
  }
  controlled.show();
  assert.equal(controlled.purposes[0], `unmark node ${away}`);
  controlled.pass(3_000);
  assert.deepEqual(
    controlled.purposes.slice(1),
    [0, 1, 2, 3].map((slice) => `sweep slice ${slice} of policy 1`),
  );
  assert.deepEqual(map.snapshot.overridden(map.group.policy), []);
});

test('sessions that run out after the store was away are not lost nodes, seen or not', () => {
  const controlled = new Controlled({ nodes: 3 });
  controlled.pass(GRACE);
  controlled.feed({ type: 'away', at: controlled.at });
  controlled.show();
  controlled.map.dead(asNodeId(2));
  controlled.show();
  assert.deepEqual(controlled.purposes, []);
  controlled.map.live(asNodeId(2));
  controlled.show();
  controlled.pass(60_000);
  assert.deepEqual(controlled.purposes, []);
});

test('where a store may end leases early, a node is lost only once its own lease has run out, and not if it is back by then', () => {
  const controlled = new Controlled({ nodes: 3, parameters: { fenceMs: 2_500 } });
  controlled.pass(GRACE);
  controlled.map.dead(asNodeId(2));
  controlled.show();
  controlled.pass(2_000);
  assert.deepEqual(controlled.purposes, []);
  controlled.map.live(asNodeId(2));
  controlled.show();
  controlled.pass(1_000);
  controlled.map.dead(asNodeId(2));
  controlled.show();
  controlled.pass(2_000);
  assert.deepEqual(controlled.purposes, []);
  controlled.pass(500);
  assert.deepEqual(controlled.purposes, ['node 2 is lost']);
});
