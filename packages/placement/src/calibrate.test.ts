import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedOf } from './conformance.ts';
import * as fc from 'fast-check';
import type { NodeId } from './ids.ts';
import { calibrate, inclusions } from './calibrate.ts';
import { foundingTopology, subclusterOf } from './conformance.ts';
import { domainWeights } from './domains.ts';
import type { Topology } from './topology.ts';

/** Domains of one node each, of the given weights. */
function topologyOf(weights: readonly number[], copies: number): Topology {
  const nodes = weights.map((weight, i) => ({ id: (i + 1) as NodeId, weight, labels: {} }));
  return { algorithm: 'wrd', version: 1, seed: 1, copies, subclusters: [{ id: 1, nodes }] };
}

/** The share of the groups each domain is in under the stored factors. */
function shares(topology: Topology): { share: number; wanted: number }[] {
  const weights = [...domainWeights(topology)];
  const total = weights.reduce((sum, [, weight]) => sum + weight, 0);
  const rates = weights.map(([domain, weight]) => (weight * (topology.factors?.[domain] ?? 65_536)) / (total * 65_536));
  const found = inclusions(rates, topology.copies);
  return weights.map(([, weight], i) => ({ share: found[i]!, wanted: (topology.copies * weight) / total }));
}

test('inclusions add up to the number of copies, whatever the rates', (t) => {
  const rate = fc.double({ min: 0.05, max: 5, noNaN: true });
  fc.assert(
    fc.property(fc.array(rate, { minLength: 6, maxLength: 30 }), fc.integer({ min: 1, max: 4 }), (rates, copies) => {
      const sum = inclusions(rates, copies).reduce((total, value) => total + value, 0);
      assert.ok(Math.abs(sum / copies - 1) < 1e-3, `sum ${sum}`);
    }),
    { numRuns: 50, seed: seedOf(t) },
  );
});

test('equal rates are included equally, and one copy is drawn in proportion to the rate', () => {
  for (const value of inclusions([2, 2, 2, 2], 3)) assert.ok(Math.abs(value - 0.75) < 1e-5);
  const [first, second] = inclusions([1, 3], 1);
  assert.ok(Math.abs(first! - 0.25) < 1e-5);
  assert.ok(Math.abs(second! - 0.75) < 1e-5);
});

test('every domain gets its share within 0.1 %, or within 2.5 % where all are too small to need a factor', (t) => {
  const weight = fc.integer({ min: 20_000, max: 100_000 });
  fc.assert(
    fc.property(
      fc.array(weight, { minLength: 10, maxLength: 22 }),
      fc.integer({ min: 2, max: 3 }),
      (weights, copies) => {
        const calibrated = calibrate(topologyOf(weights, copies));
        for (const { share, wanted } of shares(calibrated)) {
          const tolerance = calibrated.factors === undefined ? 0.025 : 1e-3;
          if (wanted < 0.95) assert.ok(Math.abs(share / wanted - 1) < tolerance, `share ${share}, wanted ${wanted}`);
        }
      },
    ),
    { numRuns: 30, seed: seedOf(t) },
  );
});

test('without them a heavy node gets less than its share', () => {
  const heavy = shares(foundingTopology('wrd', 1)).at(-1)!;
  assert.ok(heavy.share / heavy.wanted < 0.97);
});

test('factors are left out where they are needless or impossible', () => {
  const many = Array.from({ length: 60 }, () => 65_536);
  assert.equal(calibrate(topologyOf(many, 3)).factors, undefined, 'small shares');
  assert.equal(calibrate(topologyOf([1, 2, 4], 3)).factors, undefined, 'every domain in every group');
  assert.equal(calibrate(foundingTopology('rush-r', 1)).factors, undefined, 'draws by weight already');
  const stale = { ...topologyOf(many, 3), factors: { '#1': 9 } };
  assert.equal(calibrate(stale).factors, undefined, 'old factors go');
});

test('a domain too heavy for its share is capped, the rest share what is left by weight', () => {
  const calibrated = calibrate(topologyOf([1_000_000, 65_536, 65_536, 65_536, 131_072], 3));
  const [giant, ...rest] = shares(calibrated);
  assert.ok(Math.abs(giant!.share - 0.98) < 1e-3);
  assert.ok(rest.slice(0, 3).every(({ share }) => Math.abs(share / rest[0]!.share - 1) < 1e-3));
});

test('racks are calibrated as wholes', () => {
  const subclusters = [1, 1, 2, 2, 4].map((weight, i) =>
    subclusterOf(i, { firstId: i * 10 + 1, count: 4, weight, labels: { rack: `r${i}` } }),
  );
  const calibrated = calibrate({ algorithm: 'wrd', version: 1, seed: 1, copies: 2, domain: 'rack', subclusters });
  assert.deepEqual(Object.keys(calibrated.factors!), ['r0', 'r1', 'r2', 'r3', 'r4']);
});
