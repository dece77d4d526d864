import { createServer } from 'node:net';
import { once } from 'node:events';
import { NodeDisk, systemClock, SystemRandom } from '@webdfs/base';
import type { ClusterOptions } from '@webdfs/webdfs';
import { stderrLog } from './log-level.ts';
import type { Terminal } from './terminal.ts';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return address !== null && typeof address === 'object' ? address.port : 0;
}

/**
 * How V8 is to run a node. It lives on buffers that die young, and the nursery would grow to 96 MiB before anybody looks: 8 MiB
 * each half. Its code is called thousands of times a second over many small functions, which V8 would interpret for long
 * (a 4 KiB PUT cost twice the CPU in the first half minute): baseline code at once, and kept. By default V8 marks the whole heap
 * after every 64 MiB of buffers, however short they lived (a third of the CPU at 128 KiB and more): buffers count with the heap,
 * and both may double before they are marked anew (a fifth less CPU for a 128 KiB PUT in a pair of runs, docs/benchmarks.md).
 */
const ENGINE = [
  '--max-semi-space-size=8',
  '--external-memory-accounted-in-global-limit',
  '--heap-growing-percent=100',
  '--always-sparkplug',
  '--no-flush-bytecode',
] as const;

/** Program and first arguments of a node's process. */
export function nodeProgram(): string[] {
  return [process.execPath, ...process.execArgv, ...ENGINE, process.argv[1]!, 'node-process'];
}

type Defaults = Omit<ClusterOptions, 'folder' | 'nodes' | 'replicas' | 'placement' | 'buckets'>;

/** How this program starts clusters: its own command line for the nodes, the machine's clock, disk and chance. */
export async function clusterDefaults(terminal: Terminal, port?: number): Promise<Defaults> {
  return {
    nodesGiven: false,
    replicasGiven: false,
    placementGiven: false,
    host: '127.0.0.1',
    port: port ?? (await freePort()),
    credentials: undefined,
    environment: terminal.environment,
    program: nodeProgram(),
    disk: new NodeDisk(),
    clock: systemClock,
    random: new SystemRandom(),
    log: stderrLog(terminal, { process: 'supervisor' }),
    signal: terminal.signal,
  };
}
