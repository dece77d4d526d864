import type { ChildProcess } from 'node:child_process';
import { assert, type NodeId, SeededRandom, systemClock, WebdfsError } from '@webdfs/base';
import type { PullLimits, Rates } from '@webdfs/rescale';
import { LOAD_VALIDATOR } from '../load-validator.ts';
import type { DataDistributionGenerator, DataTransferScheduler, Membership, MetadataGenerator } from '../parts.ts';
import { idleShareSince, processorTimes } from '../processor-times.ts';
import type { FromNode, NodeReport, ToNode } from './messages.ts';
import { forkNode } from './node-process.ts';
import type { StorageKind } from './node-storage.ts';

/** A run with a process for each node, real sockets and caps. */
export interface ProcessSetup {
  readonly membership: Membership;
  readonly bytesPerNode: number;
  readonly rates: Rates;
  readonly limits: PullLimits;
  readonly storage: StorageKind;
  readonly metadata: MetadataGenerator;
  readonly distribution: DataDistributionGenerator;
  readonly scheduler: DataTransferScheduler;
  readonly seed: number;
  readonly signal: AbortSignal;
}

export interface ProcessFigures {
  /** From the first node's being told to start until the last byte was there. */
  readonly seconds: number;
  readonly planSeconds: number;
  readonly movedBytes: number;
  /** Between the first and the last node that finished: a bad plan, or a slow node. */
  readonly finishSpread: number;
  /** Share of the machine's processors that did nothing meanwhile. */
  readonly idleShare: number;
  readonly cpuSeconds: number;
  readonly delayMs: { readonly p99: number; readonly most: number };
  readonly faults: readonly string[];
}

const FULLEST = 1.02;
/** Nodes that take longer than this many times their plan are given up. */
const PATIENCE = 20;

/** A node's process, spoken to in turns. */
class NodeHandle {
  readonly node: NodeId;
  readonly #child: ChildProcess;
  #waiting: ((message: FromNode) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;
  #lost: Error | undefined;
  readonly #received: FromNode[] = [];
  readonly #ended: Promise<void>;

  constructor(node: NodeId) {
    this.node = node;
    this.#child = forkNode();
    this.#child.on('message', (message: FromNode) => {
      if (this.#waiting === undefined) this.#received.push(message);
      else this.#waiting(message);
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    this.#child.once('exit', (code) => {
      resolve();
      this.#lost = new WebdfsError('PEER_LOST', `the process of node ${node} ended with ${code}`);
      this.#fail?.(this.#lost);
    });
  }

  tell(message: ToNode): void {
    if (this.#child.connected) this.#child.send(message);
  }

  async hear<Type extends FromNode['type']>(type: Type): Promise<Extract<FromNode, { type: Type }>> {
    const message =
      this.#received.shift() ??
      (await new Promise<FromNode>((resolve, reject) => {
        if (this.#lost !== undefined) return reject(this.#lost);
        this.#waiting = resolve;
        this.#fail = reject;
      }));
    this.#waiting = undefined;
    assert(message.type === type, 'a node answers what it was asked');
    return message as Extract<FromNode, { type: Type }>;
  }

  /** Resolves when the process has ended, and so has removed what it stored. */
  async stop(): Promise<void> {
    this.tell({ type: 'stop' });
    await this.#ended;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

function finite(rates: Rates): Partial<Rates> {
  return Object.fromEntries(Object.entries(rates).filter(([, rate]) => rate !== Infinity));
}

function faultsOf(
  reports: ReadonlyMap<NodeId, NodeReport>,
  sizes: readonly number[],
  membership: Membership,
): string[] {
  const holders = sizes.map(() => new Set<NodeId>());
  const staying = new Set(membership.after);
  for (const [node, { intact }] of reports) if (staying.has(node)) for (const file of intact) holders[file]!.add(node);
  const damaged = Array.from(reports, ([node, report]) =>
    report.damaged.map((file) => `file ${file} is damaged on node ${node}`),
  );
  return damaged
    .flat()
    .concat(
      holders.flatMap((held, file) =>
        held.size >= membership.copies ? [] : [`file ${file} has ${held.size} copies instead of ${membership.copies}`],
      ),
    );
}

/**
 * The four steps with a process for each node.
 *
 * @throws WebdfsError PEER_LOST if a process dies, TIMEOUT if a run takes twenty times its plan; the signal's reason if it is aborted
 */
export async function runProcesses(setup: ProcessSetup): Promise<ProcessFigures> {
  const { membership, rates, limits } = setup;
  setup.signal.throwIfAborted();
  const random = new SeededRandom(setup.seed);
  const sizes = setup.metadata.sizes((setup.bytesPerNode * membership.before.length) / membership.copies);
  const files = setup.distribution.distribute(sizes, membership, random);
  const { transfers, seconds: planSeconds } = setup.scheduler.schedule({
    files,
    membership,
    ratesOf: () => rates,
    random,
  });
  const start = LOAD_VALIDATOR.validate(sizes, (file) => new Set(files[file]!.before), {
    nodes: membership.before,
    copies: membership.copies,
    fullest: FULLEST,
  });
  const handles = [...new Set([...membership.before, ...membership.after])].map((node) => new NodeHandle(node));
  try {
    for (const handle of handles) {
      const { node } = handle;
      handle.tell({
        type: 'prepare',
        node,
        files: files.flatMap(({ bytes, before }, file) => (before.includes(node) ? [[file, bytes] as const] : [])),
        transfers: transfers.filter(({ from, to }) => from === node || to === node),
        limits,
        rates: finite(rates),
        storage: setup.storage,
      });
    }
    const ports: (readonly [NodeId, number])[] = [];
    for (const handle of handles) ports.push([handle.node, (await handle.hear('listening')).port]);
    for (const handle of handles) handle.tell({ type: 'connect', ports });
    for (const handle of handles) await handle.hear('ready');
    setup.signal.throwIfAborted();
    const reports = await execute(handles, planSeconds, setup.signal);
    return {
      ...gather(reports),
      planSeconds,
      idleShare: reports.idleShare,
      faults: [...start.faults, ...faultsOf(reports.nodes, sizes, membership)],
    };
  } finally {
    await Promise.all(handles.map((handle) => handle.stop()));
  }
}

interface Executed {
  readonly nodes: ReadonlyMap<NodeId, NodeReport>;
  readonly idleShare: number;
  /** By the machine's clock, seconds. */
  readonly startedAt: number;
}

/** Step three, and what each node says of it. */
async function execute(handles: readonly NodeHandle[], planSeconds: number, signal: AbortSignal): Promise<Executed> {
  const before = processorTimes();
  const late = AbortSignal.timeout(Math.ceil(PATIENCE * 1000 * (planSeconds + 1)));
  const giveUp = (): void => {
    for (const handle of handles) handle.kill();
  };
  const either = AbortSignal.any([signal, late]);
  either.addEventListener('abort', giveUp, { once: true });
  try {
    const startedAt = systemClock.now() / 1000;
    for (const handle of handles) handle.tell({ type: 'start' });
    for (const handle of handles) await handle.hear('finished');
    const idleShare = idleShareSince(before);
    const nodes = new Map<NodeId, NodeReport>();
    for (const handle of handles) {
      handle.tell({ type: 'inspect' });
      nodes.set(handle.node, await handle.hear('inspected'));
    }
    return { nodes, startedAt, idleShare };
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted)
      throw new WebdfsError('TIMEOUT', `a run of ${planSeconds} s took ${PATIENCE} times as long`, { cause: error });
    throw error;
  } finally {
    either.removeEventListener('abort', giveUp);
  }
}

function gather({ nodes, startedAt }: Executed): Omit<ProcessFigures, 'planSeconds' | 'idleShare' | 'faults'> {
  const all = [...nodes.values()];
  const ends = all.map(({ figures }) => figures.finishedAt).filter((end) => end > 0);
  const last = Math.max(startedAt, ...ends);
  return {
    seconds: last - startedAt,
    finishSpread: last - Math.min(last, ...ends),
    movedBytes: all.reduce((sum, { figures }) => sum + figures.written, 0),
    cpuSeconds: all.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    delayMs: {
      p99: Math.max(...all.map(({ delayMs }) => delayMs.p99)),
      most: Math.max(...all.map(({ delayMs }) => delayMs.most)),
    },
  };
}
