export { atMost, BENCH_EXIT, type Check } from './check.ts';
export { Histogram } from './histogram.ts';
export { benchObjects, type MeasuredTarget, type ObjectReport, type ObjectRow } from './object-bench.ts';
export { usageOf } from './process-usage.ts';
