import { cpus } from 'node:os';

/** What the processors of this machine did since it started, milliseconds of all together. */
interface ProcessorTimes {
  readonly idle: number;
  readonly all: number;
}

export function processorTimes(): ProcessorTimes {
  let [idle, all] = [0, 0];
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idle, all };
}

/** The share that did nothing since then. */
export function idleShareSince(before: ProcessorTimes): number {
  const { idle, all } = processorTimes();
  return all === before.all ? 1 : (idle - before.idle) / (all - before.all);
}
