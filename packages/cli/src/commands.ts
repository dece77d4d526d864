import type { Command } from './command.ts';

/** The commands by their first word, in the order of the help. A command brings rooms along that others do not need. */
const COMMANDS: Readonly<Record<string, () => Promise<readonly Command[]>>> = {
  up: async () => [(await import('./commands/up.ts')).up],
  status: async () => [(await import('./commands/status.ts')).status],
  put: async () => [(await import('./commands/put.ts')).put],
  get: async () => [(await import('./commands/get.ts')).get],
  ls: async () => [(await import('./commands/ls.ts')).ls],
  rm: async () => [(await import('./commands/rm.ts')).rm],
  stat: async () => [(await import('./commands/stat.ts')).stat],
  where: async () => [(await import('./commands/where.ts')).where],
  plan: async () => [(await import('./commands/plan.ts')).plan],
  mb: async () => [(await import('./commands/buckets.ts')).mb],
  rb: async () => [(await import('./commands/buckets.ts')).rb],
  scrub: async () => [(await import('./commands/scrub.ts')).scrub],
  verify: async () => [(await import('./commands/verify.ts')).verify],
  fsck: async () => [(await import('./commands/fsck.ts')).fsck],
  check: async () => [(await import('./commands/check.ts')).check],
  bench: async () => (await import('./commands/bench.ts')).benchmarks,
  cluster: async () => (await import('./commands/cluster.ts')).clusterCommands,
  group: async () => (await import('./commands/group.ts')).groupCommands,
  rescale: async () => [(await import('./commands/rescale.ts')).rescaleHistory],
  node: async () => [(await import('./commands/node.ts')).node],
  'node-process': async () => [(await import('./commands/node-process.ts')).nodeProcess],
};

/** Those that a command line may mean: of its first word, none for the version, else all, for the help. */
export async function loadCommands(word: string | undefined): Promise<readonly Command[]> {
  if (word === 'version' || word === '--version') return [];
  const loads = word !== undefined && Object.hasOwn(COMMANDS, word) ? [COMMANDS[word]!] : Object.values(COMMANDS);
  return (await Promise.all(loads.map((load) => load()))).flat();
}
