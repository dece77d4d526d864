import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom } from '@webdfs/base';
import { Histogram, MAX_SAMPLES } from './histogram.ts';

test('percentiles are values that were added, by nearest rank', () => {
  const histogram = new Histogram(new SeededRandom(1));
  for (let value = 100; value >= 1; value--) histogram.add(value);
  assert.deepEqual(histogram.percentiles([0.5, 0.95, 0.99, 1]), [50, 95, 99, 100]);
  assert.equal(histogram.mean, 50.5);
});

test('an empty histogram answers zero, not NaN', () => {
  const histogram = new Histogram(new SeededRandom(1));
  assert.deepEqual(histogram.percentiles([0.5]), [0]);
  assert.equal(histogram.mean, 0);
});

test('beyond its bound the histogram keeps an even sample', () => {
  const histogram = new Histogram(new SeededRandom(7));
  for (let value = 0; value < MAX_SAMPLES * 3; value++) histogram.add(value);
  const [median] = histogram.percentiles([0.5]);
  assert.ok(Math.abs(median! / (MAX_SAMPLES * 1.5) - 1) < 0.02, `median ${median}`);
});
