export { Histogram } from './object/histogram.ts';
export { benchObjects, type MeasuredTarget, type ObjectReport, type ObjectRow } from './object/object-bench.ts';
export { usageOf } from './object/process-usage.ts';
export { atMost, BENCH_EXIT, type Check } from './report/check.ts';
export { environmentOf, type Report } from './report/report.ts';
export { reportText } from './report/terminal-text.ts';
export { writeReport } from './report/write-report.ts';
