import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, type NodeId } from '@webdfs/base';
import type { MapView, PlannedNode, RescaleRecord } from '@webdfs/cluster';
import type { NodeStatus } from '@webdfs/replica';
import { accountAfter, isOver, metersAfter, type Sight } from './account.ts';
import { measuredRates, measuredTimes } from './measured-times.ts';
import { rescaleSummary } from './rescale-summary.ts';

const MB = 1_000_000;

interface Seen {
  readonly session?: number;
  readonly received: number;
  readonly fastest?: number;
}

function sightOf(
  nodes: Readonly<Record<number, Seen>>,
  { nowMs = 0, map = {} }: { nowMs?: number; map?: Partial<MapView['map']> } = {},
): Sight {
  const statuses = new Map(
    Object.entries(nodes).map(([node, { received, fastest = 0 }]): [NodeId, NodeStatus] => [
      asNodeId(Number(node)),
      {
        moves: {
          receivedBytes: received,
          fastestReceive: fastest,
          fastestSend: 0,
          readPerSecond: 0,
          writePerSecond: 0,
        },
      } as unknown as NodeStatus,
    ]),
  );
  const view = {
    // no groups at all: what is counted here are bytes
    map: { policies: [{ id: 1, copies: 2 }], groupBits: -Infinity, ...map },
    live: (node: NodeId) => ({ session: nodes[node]?.session ?? 1 }),
  } as unknown as MapView;
  return { view, statuses, sizes: { bytesOf: () => 0, ofPolicy: () => new Float64Array(0), isWhole: true }, nowMs };
}

function aRecord(nodes: readonly PlannedNode[], over: Partial<RescaleRecord> = {}): RescaleRecord {
  return {
    number: 1,
    command: 'cluster add',
    beganMs: 0,
    planned: { groups: 8, copies: 8, bytes: 80 * MB, leastBytes: 80 * MB },
    moved: { bytes: 0, groups: 0 },
    pausedMs: 0,
    open: { nodes, meters: [], lookedMs: 0 },
    ...over,
  };
}

const ROWS: readonly PlannedNode[] = [
  [1, 100 * MB, 60 * MB, 0, 40 * MB, 40 * MB],
  [2, 100 * MB, 60 * MB, 0, 40 * MB, 40 * MB],
  [3, 0, 80 * MB, 80 * MB, 0, 0],
];

test('what nodes took in adds up over their restarts and over those who count, and nothing is counted twice', () => {
  let record = aRecord(ROWS, {
    open: { nodes: ROWS, meters: metersAfter([], sightOf({ 1: { received: 7 }, 2: { received: 9 } })), lookedMs: 0 },
  });
  const look = (nodes: Readonly<Record<number, Seen>>): number => {
    record = accountAfter(record, sightOf(nodes));
    return record.moved.bytes;
  };
  assert.equal(look({ 1: { received: 7 }, 2: { received: 9 } }), 0, 'what was before does not count');
  assert.equal(look({ 1: { received: 10 }, 2: { received: 9 }, 3: { received: 100 } }), 103);
  assert.equal(look({ 1: { received: 10 }, 3: { received: 150 } }), 153, 'a node that does not answer keeps its own');
  assert.equal(look({ 1: { received: 10 }, 2: { received: 9 }, 3: { received: 20, session: 2 } }), 173);
  // another controller goes on with what is written
  record = JSON.parse(JSON.stringify(record)) as RescaleRecord;
  assert.equal(look({ 3: { received: 25, session: 2 } }), 178);
});

test('time in which it stood still is told apart', () => {
  const paused = sightOf({}, { nowMs: 5_000, map: { paused: true } });
  const record = accountAfter(aRecord(ROWS, { open: { nodes: ROWS, meters: [], lookedMs: 2_000 } }), paused);
  assert.equal(record.pausedMs, 3_000);
  assert.equal(rescaleSummary({ ...record, outcome: 'settled', endedMs: 9_000 }, 0).seconds, 6);
});

test('no rate, no bound; a cap is known before anything moved, and the fastest node speaks for all', () => {
  assert.equal(measuredRates(sightOf({ 1: { received: 0 } }).statuses), undefined);
  assert.equal(accountAfter(aRecord(ROWS), sightOf({ 1: { received: 0 } })).figures, undefined);
  const capped = accountAfter(aRecord(ROWS), sightOf({}, { map: { moveLimits: { bytesPerSecond: 2 * MB } } }));
  assert.equal(capped.figures?.boundSeconds, 40);
  assert.deepEqual([capped.figures?.paceNode, capped.figures?.paceBy], [3, 'receive']);
  const rates = measuredRates(
    sightOf({ 1: { received: 0, fastest: MB }, 2: { received: 0, fastest: 4 * MB } }).statuses,
  );
  assert.deepEqual(rates?.(asNodeId(3)), { network: 4 * MB, read: Infinity, write: Infinity });
});

test('nodes of one share that join or leave have the bound of uniform placement', () => {
  const unit = (): { network: number; read: number; write: number } => ({
    network: 1,
    read: Infinity,
    write: Infinity,
  });
  // the vectors of 3 + 1 and 5 − 1, two copies, twelve bytes a node
  const grown: PlannedNode[] = [1, 2, 3].map((node) => [node, 12, 9, 0, 3, 3]);
  const grow = measuredTimes({ nodes: [...grown, [4, 0, 9, 9, 0, 0]], copies: 2 }, unit);
  assert.deepEqual([grow.boundSeconds, grow.boundBy], [9, 'receive']);
  const shrunk: PlannedNode[] = [1, 2, 3, 4].map((node) => [node, 12, 15, 3, 3, 3]);
  const shrink = measuredTimes({ nodes: [...shrunk, [5, 12, 0, 0, 0, 0]], copies: 2 }, unit);
  assert.deepEqual([shrink.boundSeconds, shrink.boundBy], [3, 'receive']);
});

test('only what settled has the ratios of its time', () => {
  const figures = { boundSeconds: 40, boundBy: 'receive', planSeconds: 44, paceNode: 3, paceBy: 'receive' };
  const over = { figures, moved: { bytes: 84 * MB, groups: 8 }, endedMs: 50_000 };
  const settled = rescaleSummary(aRecord(ROWS, { ...over, outcome: 'settled' }), 0);
  assert.deepEqual(settled.ratios, { move: 1.05, place: 1.1, exec: 50 / 44, total: 1.25 });
  const aborted = rescaleSummary(aRecord(ROWS, { ...over, outcome: 'aborted' }), 0);
  assert.deepEqual(aborted.ratios, { move: 1, place: 1.1 });
});

test('a change is over when its target is reached', () => {
  assert.ok(isOver(aRecord(ROWS), sightOf({}).view));
  const target = { algorithm: 'wrd', version: 1, seed: 1, copies: 2, subclusters: [] } as const;
  assert.ok(!isOver(aRecord(ROWS), sightOf({}, { map: { target } }).view));
});
