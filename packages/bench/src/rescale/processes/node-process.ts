import { type ChildProcess, fork } from 'node:child_process';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { assert, systemClock } from '@webdfs/base';
import { PullDispatcher } from '@webdfs/rescale';
import { Execution } from '../execution.ts';
import { isIntact } from './content.ts';
import { DriveStorage } from './drive-storage.ts';
import { MemoryStorage } from './memory-storage.ts';
import type { FromNode, ToNode } from './messages.ts';
import type { NodeStorage } from './node-storage.ts';
import { SocketNetwork } from './socket-network.ts';

/** One node of a run as a process of its own: this file, started again. */

const ROLE = 'rescale-node';
const NANOSECONDS_PER_MS = 1e6;

export function forkNode(): ChildProcess {
  return fork(import.meta.filename, [ROLE], { execArgv: process.execArgv });
}

function tell(message: FromNode): void {
  process.send!(message);
}

type Prepare = Extract<ToNode, { type: 'prepare' }>;

/** Pulls and serves until it is stopped. */
class NodeProcess {
  readonly #storage: NodeStorage;
  readonly #network: SocketNetwork;
  readonly #execution: Execution;
  readonly #dispatcher: PullDispatcher;
  readonly #prepare: Prepare;
  readonly #delay: ReturnType<typeof monitorEventLoopDelay> = monitorEventLoopDelay({ resolution: 5 });
  #cpu = process.cpuUsage();

  constructor(prepare: Prepare) {
    const { node, files, transfers, limits, rates, storage } = prepare;
    const { network = Infinity, read = Infinity, write = Infinity } = rates;
    this.#prepare = prepare;
    const device = { read, write };
    this.#storage =
      storage.kind === 'memory'
        ? new MemoryStorage(device, systemClock)
        : new DriveStorage({ ...storage, node }, device, systemClock);
    for (const [file, bytes] of files) this.#storage.generate(node, file, bytes);
    this.#dispatcher = new PullDispatcher(node, transfers, limits);
    this.#network = new SocketNetwork(node, transfers, {
      rate: network,
      clock: systemClock,
      arrivals: {
        asked: (transfer) => this.#execution.asked(transfer),
        received: (transfer, payload) => this.#execution.received(transfer, payload),
      },
    });
    this.#execution = new Execution(this.#dispatcher, [node], {
      storage: this.#storage,
      network: this.#network,
      // of the machine: all nodes have one
      now: () => systemClock.now() / 1000,
      wait: (seconds, over) => systemClock.after(seconds * 1000, over),
      onWritten: () => undefined,
    });
  }

  async handle(message: Exclude<ToNode, Prepare>): Promise<void> {
    switch (message.type) {
      case 'connect':
        await this.#network.connect(new Map(message.ports));
        return tell({ type: 'ready' });
      case 'start':
        return this.#start();
      case 'inspect':
        return this.#inspect();
      case 'stop':
        this.#network.close();
        this.#storage.close();
        process.disconnect();
    }
  }

  async listen(): Promise<void> {
    tell({ type: 'listening', port: await this.#network.listen() });
  }

  #start(): void {
    this.#cpu = process.cpuUsage();
    this.#delay.enable();
    this.#execution.start();
    this.#watch();
  }

  /** The last write tells nobody: look whether all is there. */
  #watch(): void {
    if (this.#dispatcher.done) tell({ type: 'finished' });
    else systemClock.after(20, () => this.#watch());
  }

  #inspect(): void {
    this.#delay.disable();
    const { user, system } = process.cpuUsage(this.#cpu);
    const intact: number[] = [];
    const damaged: number[] = [];
    for (const [file, bytes] of this.#storage.contents()) (isIntact(file, bytes) ? intact : damaged).push(file);
    tell({
      type: 'inspected',
      figures: this.#execution.figures.get(this.#prepare.node)!,
      intact,
      damaged,
      cpuSeconds: (user + system) / 1e6,
      delayMs: { p99: this.#delay.percentile(99) / NANOSECONDS_PER_MS, most: this.#delay.max / NANOSECONDS_PER_MS },
    });
  }
}

function serveRun(): void {
  let node: NodeProcess | undefined;
  process.on('message', (message: ToNode) => {
    if (message.type === 'prepare') {
      node = new NodeProcess(message);
      void node.listen();
      return;
    }
    assert(node !== undefined, 'a node is prepared before it is told anything');
    void node.handle(message);
  });
  // whoever started it is gone
  process.on('disconnect', () => process.exit());
}

if (process.argv[2] === ROLE && process.send !== undefined) serveRun();
