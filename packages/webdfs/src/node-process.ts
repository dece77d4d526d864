import { type ChildProcess, spawn } from 'node:child_process';
import { asNodeId, type Clock, keepAlive, type Log, type NodeId, type Timer, WebdfsError } from '@webdfs/base';
import { isFromNode, type ToNode } from './node-messages.ts';
import { type ChildEvent, type ChildState, firstChild, stepChild } from './restart.ts';

const TICK_MS = 100;
/**
 * What a node's process wants of its surroundings, unless somebody has set it: threads enough that a stalled index write
 * does not hold up the disk's syncs (libuv's default is 4), and few malloc arenas, which otherwise keep what each of those
 * threads once freed.
 */
const SURROUNDINGS = { UV_THREADPOOL_SIZE: '16', MALLOC_ARENA_MAX: '2' } as const;
/** How long a node may take to stop cleanly before it is killed; it loses nothing by that. */
const STOP_MS = 15_000;

export interface NodeProcessOptions {
  /** Undefined: the node learns its number when it joins. */
  readonly node?: NodeId;
  /** Program and arguments. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Log;
  /** The process has ended, whatever the reason. */
  readonly onExit: () => void;
}

/** One supervised node: started, watched, killed when it hangs, started again when it ended. */
export class NodeProcess {
  readonly #options: NodeProcessOptions;
  readonly #log: Log;
  #state: ChildState;
  #child: ChildProcess | undefined;
  #node: NodeId | undefined;
  #address = '';
  #timer: Timer | undefined;
  /** Between a death and the next start nothing else may hold the supervisor. */
  readonly #alive = keepAlive();
  #readyListeners: (() => void)[] = [];
  #endListeners: (() => void)[] = [];
  #deaths = 0;
  #failure: WebdfsError | undefined;

  constructor(options: NodeProcessOptions) {
    this.#options = options;
    this.#node = options.node;
    this.#log = options.node === undefined ? options.log : options.log.with({ node: options.node });
    const first = firstChild(options.clock.monotonic());
    this.#state = first.state;
    this.#spawn();
    this.#tick();
  }

  get node(): NodeId | undefined {
    return this.#node;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get address(): string {
    return this.#address;
  }

  get up(): boolean {
    return this.#state.type === 'up';
  }

  /** Why it could not start, as it said last. */
  get failure(): WebdfsError | undefined {
    return this.#failure;
  }

  /** How often it ended before it was ever ready. */
  get deathsBeforeReady(): number {
    return this.#deaths;
  }

  /** Resolves when it is up, now or later. */
  ready(): Promise<void> {
    if (this.up) return Promise.resolve();
    return new Promise((resolve) => this.#readyListeners.push(resolve));
  }

  /** Stops it for good: cleanly if it listens, by force if not. */
  async stop(): Promise<void> {
    this.#step({ type: 'stop' });
    this.#timer?.cancel();
    this.#alive.cancel();
    const child = this.#child;
    if (child === undefined) return;
    const ended = new Promise<void>((resolve) => this.#endListeners.push(resolve));
    const message: ToNode = { type: 'stop' };
    if (child.connected) child.send(message);
    const killer = this.#options.clock.after(STOP_MS, () => {
      this.#log.warn('node does not stop: killed', { pid: child.pid });
      child.kill('SIGKILL');
    });
    await ended;
    killer.cancel();
  }

  #step(event: ChildEvent): void {
    const { state, effect } = stepChild(this.#state, event, this.#options.clock.monotonic());
    this.#state = state;
    if (effect === 'spawn') this.#spawn();
    if (effect === 'kill') {
      this.#log.error('node hangs: killed', { pid: this.pid });
      this.#child?.kill('SIGKILL');
    }
  }

  #tick(): void {
    this.#timer = this.#options.clock.after(TICK_MS, () => {
      this.#step({ type: 'tick' });
      this.#tick();
    });
  }

  #spawn(): void {
    const [program, ...words] = this.#options.command;
    if (program === undefined) throw new WebdfsError('BAD_CONFIG', 'no program to start nodes with');
    const child = spawn(program, words, {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...SURROUNDINGS, ...this.#options.environment },
      // a Ctrl-C at the terminal goes to the whole process group: the supervisor tells the nodes itself
      detached: true,
    });
    this.#child = child;
    child.on('message', (message) => {
      if (!isFromNode(message) || this.#child !== child) return;
      if (message.type === 'failed') {
        this.#failure = new WebdfsError(message.code, message.message);
        return;
      }
      this.#step({ type: message.type });
      if (message.type !== 'ready') return;
      this.#address = message.address;
      this.#node = asNodeId(message.node);
      this.#deaths = 0;
      for (const listener of this.#readyListeners.splice(0)) listener();
    });
    child.on('error', (error) => this.#log.error('node cannot be started', { reason: error.message }));
    child.on('close', (code, signal) => {
      this.#child = undefined;
      if (this.#state.type !== 'stopped') {
        this.#deaths += this.#state.type === 'up' ? 0 : 1;
        this.#log.warn('node ended', { code: code ?? undefined, signal: signal ?? undefined });
      }
      this.#step({ type: 'exit' });
      this.#options.onExit();
      for (const listener of this.#endListeners.splice(0)) listener();
    });
  }
}
