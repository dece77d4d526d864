import { readFileSync } from 'node:fs';

/** What a set of processes has used so far, from `/proc` (Linux). */
export interface Usage {
  /** User and system time of all threads, milliseconds. */
  readonly cpuMs: number;
  /** Anonymous resident memory, bytes. */
  readonly anonymousBytes: number;
}

/** Clock ticks a second of `/proc/<pid>/stat`; 100 on every Linux that Node.js runs on. */
const TICKS_PER_SECOND = 100;

function one(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // the command's name may hold spaces and parentheses: fields are counted from the last one
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const anonymous = Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
  return { cpuMs: (ticks * 1000) / TICKS_PER_SECOND, anonymousBytes: anonymous * 1024 };
}

/** @throws Error with the system's message if one of the processes is gone: the measurement is void then */
export function usageOf(pids: readonly number[]): Usage {
  const usages = pids.map(one);
  return {
    cpuMs: usages.reduce((sum, usage) => sum + usage.cpuMs, 0),
    anonymousBytes: usages.reduce((sum, usage) => sum + usage.anonymousBytes, 0),
  };
}
