import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom, systemClock } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { exitCodeOfReport, type Report } from '../report/report.ts';
import { benchBlog } from './blog-bench.ts';
import { Content } from './content.ts';
import { PUBLISHED } from './published.ts';
import type { BlogTarget } from './target.ts';

const NODES = 15;

/** A store in memory with two copies of everything, and what it is made to do wrong. */
class MemoryTarget implements BlogTarget {
  readonly objects = new Map<string, { bytes: Uint8Array; copies: { node: number; good: boolean }[] }>();
  readonly #random: SeededRandom;
  refusals = 0;
  kills = 0;
  /** What becomes of an object that was acknowledged. */
  wrong: (key: string) => 'nothing' | 'lost' | 'bytes' | 'copy' | 'missing' = () => 'nothing';
  nodeOf: () => number;

  constructor(random: SeededRandom) {
    this.#random = random;
    this.nodeOf = () => 1 + random.below(NODES);
  }

  put(key: string, bytes: Uint8Array): Promise<void> {
    // every tenth request meets a node that was just killed
    if (this.#random.fraction() < 0.1) {
      this.refusals++;
      return Promise.reject(new Error('503'));
    }
    const first = this.nodeOf();
    const second = (first % NODES) + 1;
    const copies = [first, second].map((node) => ({ node, good: true }));
    const wrong = this.wrong(key);
    if (wrong === 'copy') copies[0]!.good = false;
    if (wrong === 'missing') copies.pop();
    if (wrong === 'bytes') bytes = Uint8Array.from(bytes, (byte, i) => (i === 7 ? byte ^ 1 : byte));
    if (wrong !== 'lost') this.objects.set(key, { bytes, copies });
    return Promise.resolve();
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return Promise.resolve(this.objects.get(key)?.bytes);
  }

  copies(key: string): Promise<{ node: number; good: boolean; isRecord: boolean }[]> {
    return Promise.resolve((this.objects.get(key)?.copies ?? []).map((copy) => ({ ...copy, isRecord: true })));
  }

  nodes(): Promise<number[]> {
    return Promise.resolve(Array.from({ length: NODES }, (_, i) => i + 1));
  }

  kill(): Promise<number> {
    this.kills++;
    return Promise.resolve(this.nodeOf());
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }

  bytesOnDisk(): Promise<number> {
    return Promise.resolve(1);
  }
}

async function run(target: BlogTarget, seed: number): Promise<Report> {
  return await benchBlog({
    target,
    uploads: 300,
    sizeFactor: 0.001,
    clients: 20,
    thinkMs: 0,
    kills: 4,
    seed,
    clock: systemClock,
    signal: new AbortController().signal,
    command: 'webdfs bench blog-2009',
    onProgress: () => undefined,
  });
}

const failing = ({ checks }: Report): string[] => checks.filter(({ pass }) => !pass).map(({ name }) => name);

test('a store that keeps everything passes, whatever it refuses on the way; the mix is the published one', async (t) => {
  const seed = seedOf(t);
  const target = new MemoryTarget(new SeededRandom(seed));
  const report = await run(target, seed);
  assert.deepEqual(failing(report), []);
  assert.equal(exitCodeOfReport(report), 0);
  assert.equal(target.kills, 4);
  assert.ok(target.refusals > 0);
  const rows = new Map(report.sections[0]!.tables[0]!.rows.map(([name, , ours]) => [name, Number(ours)]));
  assert.equal(rows.get('uploads'), 300);
  const share = rows.get('downloads')! / (300 + rows.get('downloads')!);
  assert.ok(Math.abs(share - 0.8) < 0.1, `${share} of all requests are reads`);
});

test('an object that is lost, other bytes, a damaged copy, a missing one: each is seen', async (t) => {
  const seed = seedOf(t);
  const expected = {
    lost: ['objects lost', 'objects corrupt', 'copies missing', 'reads of wrong bytes'],
    bytes: ['objects corrupt', 'reads of wrong bytes'],
    copy: ['copies corrupt'],
    missing: ['copies missing'],
  } as const;
  for (const [wrong, checks] of Object.entries(expected)) {
    const target = new MemoryTarget(new SeededRandom(seed));
    // the first is there from the beginning: it will be read
    target.wrong = (key) => (key === 'object-0' ? (wrong as keyof typeof expected) : 'nothing');
    assert.deepEqual(failing(await run(target, seed)), checks, wrong);
  }
});

test('a node that gets far more than its share is seen', async (t) => {
  const seed = seedOf(t);
  const random = new SeededRandom(seed);
  const target = new MemoryTarget(random);
  target.nodeOf = () => (random.fraction() < 0.2 ? 3 : 1 + random.below(NODES));
  assert.deepEqual(failing(await run(target, seed)), ['spread between nodes, 5 % and what chance adds']);
});

test('sizes lie between the published ones and have their mean, and bytes differ between objects', () => {
  const content = new Content(1, 1);
  const sizes = Array.from({ length: 4_000 }, (_, i) => content.sizeOf(i));
  assert.ok(Math.min(...sizes) >= PUBLISHED.smallestBytes && Math.max(...sizes) <= PUBLISHED.largestBytes);
  const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
  assert.ok(Math.abs(mean / 1_880_000 - 1) < 0.1, `a mean of ${mean}`);
  const small = new Content(1, 0.01);
  assert.notDeepEqual(small.bytesOf(1).subarray(0, 100), small.bytesOf(2).subarray(0, 100));
  assert.deepEqual(small.bytesOf(1), new Content(1, 0.01).bytesOf(1));
});
