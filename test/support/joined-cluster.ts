import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '@webdfs/base';
import type { RunningEtcd, Seat } from '@webdfs/cluster/testing';
import { S3Client, type StatusReport } from '@webdfs/webdfs';
import { atTheEnd } from './last-rites.ts';
import { cleanEnvironment, FLAGS, freePort, MAIN, mustRun, runProgram } from './running-cluster.ts';

/** Nodes that join a cluster through etcd, each with a supervisor of its own, as on machines of their own. */

const READY_MS = 90_000;
const STOP_MS = 60_000;

interface ReadyMember {
  readonly node: number;
  readonly pid: number;
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Where a machine stands; on loopback, in no rack, if not given. */
export interface MachineSeat extends Seat {
  readonly rack: string;
  /** Of its processes alone. */
  readonly environment?: Readonly<Record<string, string>>;
}

interface Machine {
  readonly seat: Seat;
  /** Words that only this machine is given. */
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly data: string;
  readonly port: number;
  process: ChildProcess | undefined;
  ready: ReadyMember | undefined;
}

export interface JoinedOptions {
  readonly nodes?: number;
  /** One for each node. */
  readonly seats?: readonly MachineSeat[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Further words for whoever speaks to etcd. */
  readonly etcd?: readonly string[];
  /** Further words for every node. */
  readonly arguments?: readonly string[];
  readonly replicas?: number;
}

export class JoinedCluster implements AsyncDisposable {
  readonly #etcd: RunningEtcd;
  readonly #options: JoinedOptions;
  readonly #machines: Machine[] = [];
  readonly #log: string[] = [];
  readonly #name: string;
  #owned = '';
  #clients = 0;
  token = '';
  // a node ends by itself once its supervisor is gone
  readonly #rites = atTheEnd(() => {
    for (const { process: child } of this.#machines) child?.kill('SIGKILL');
  });
  #keys = { accessKeyId: '', secretAccessKey: '' };

  private constructor(etcd: RunningEtcd, name: string, options: JoinedOptions) {
    this.#etcd = etcd;
    this.#name = name;
    this.#options = options;
  }

  /** A new cluster on machines of its own. */
  static async start(etcd: RunningEtcd, options: JoinedOptions = {}): Promise<JoinedCluster> {
    const cluster = new JoinedCluster(etcd, 'test', options);
    cluster.#owned = await mkdtemp(join(tmpdir(), 'webdfs-joined-'));
    const count = options.nodes ?? options.seats?.length ?? 3;
    const words = ['cluster', 'init', '--json', '--nodes', String(count), ...cluster.#where];
    if (options.replicas !== undefined) words.push('--replicas', String(options.replicas));
    const said = await mustRun(process.execPath, [...FLAGS, MAIN, ...words], options.environment);
    cluster.token = (JSON.parse(said) as { token: string }).token;
    return await cluster.#begin(Array.from({ length: count }, (_, i) => join(cluster.#owned, `machine-${i}`)));
  }

  /** A cluster that is in etcd already, its nodes on folders that they have. */
  static async of(
    etcd: RunningEtcd,
    { name, token, folders }: { name: string; token: string; folders: readonly string[] },
  ): Promise<JoinedCluster> {
    const cluster = new JoinedCluster(etcd, name, {});
    cluster.token = token;
    return await cluster.#begin(folders);
  }

  async #begin(folders: readonly string[]): Promise<this> {
    try {
      for (const [i, data] of folders.entries()) {
        const seat = this.#options.seats?.[i];
        this.#machines.push({
          seat: seat ?? { host: '127.0.0.1', command: [] },
          words: seat === undefined ? [] : ['--rack', seat.rack],
          environment: seat?.environment ?? {},
          data,
          port: await freePort(),
          process: undefined,
          ready: undefined,
        });
      }
      await Promise.all(folders.map((_, i) => this.startMachine(i)));
      return this;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  get #where(): string[] {
    return ['--join', this.#etcd.url, '--cluster', this.#name, ...(this.#options.etcd ?? [])];
  }

  /** Starts a machine that does not run; resolves when its node serves. */
  async startMachine(i: number, ...words: string[]): Promise<void> {
    const machine = this.#machines[i]!;
    const { host, command } = machine.seat;
    const listen = ['--listen', `${host}:${machine.port}`, '--peers', `${host}:0`];
    const said = ['--data', machine.data, '--machine', `machine-${i}`, ...listen, ...machine.words];
    const further = [...(this.#options.arguments ?? []), ...words];
    const program = [...command, process.execPath, ...FLAGS, MAIN, 'node', '--json', ...this.#where];
    const child = spawn(program[0]!, [...program.slice(1), ...said, ...further], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...cleanEnvironment(), WEBDFS_TOKEN: this.token, ...this.#options.environment, ...machine.environment },
    });
    machine.process = child;
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.#log.push(line);
      if (this.#log.length > 2_000) this.#log.shift();
    });
    const [line] = await Promise.race([
      once(createInterface({ input: child.stdout }), 'line', { signal: AbortSignal.timeout(READY_MS) }),
      once(child, 'exit').then(([code]) => {
        throw new Error(`webdfs node ended with ${code} before it was ready:\n${this.log}`);
      }),
    ]);
    machine.ready = JSON.parse(String(line)) as ReadyMember;
    const { accessKeyId, secretAccessKey } = machine.ready;
    this.#keys = { accessKeyId, secretAccessKey };
  }

  /** What the processes have logged lately. */
  get log(): string {
    return this.#log.join('\n');
  }

  /** The number of the node on a machine. */
  nodeOf(i: number): number {
    return this.#machines[i]!.ready!.node;
  }

  folderOf(i: number): string {
    return this.#machines[i]!.data;
  }

  get endpoints(): string[] {
    return this.#machines.map(({ seat, port }) => `http://${seat.host}:${port}`);
  }

  /** Stops a machine cleanly. */
  async stopMachine(i: number): Promise<void> {
    const child = this.#machines[i]?.process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit', { signal: AbortSignal.timeout(STOP_MS) });
    child.kill('SIGTERM');
    await ended;
  }

  /** Ends a machine as a power cut would: its supervisor and its node. */
  async killMachine(i: number): Promise<void> {
    const { nodes } = await this.status();
    const pid = nodes.find(({ id }) => id === this.nodeOf(i))?.pid;
    const child = this.#machines[i]!.process!;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
    await ended;
  }

  /** Takes the data of a machine that does not run away. */
  async wipeMachine(i: number): Promise<void> {
    await rm(this.#machines[i]!.data, { recursive: true, force: true });
  }

  /** A client of one node, the next one at every call, to be disposed of. */
  client(connections = 8, i: number = this.#clients++ % this.#machines.length): S3Client {
    return new S3Client({ endpoint: this.endpoints[i]!, credentials: this.#keys, clock: systemClock, connections });
  }

  /** Runs the command line against one node. */
  async webdfs(i: number, ...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    return await runProgram(process.execPath, [...FLAGS, MAIN, ...words], {
      WEBDFS_ENDPOINT: this.endpoints[i]!,
      WEBDFS_ACCESS_KEY_ID: this.#keys.accessKeyId,
      WEBDFS_SECRET_ACCESS_KEY: this.#keys.secretAccessKey,
    });
  }

  /** Makes a bucket, as patiently as clients of S3 are: a node that has just begun may answer 503. */
  async makeBucket(name: string, withinMs = 60_000): Promise<void> {
    const until = performance.now() + withinMs;
    for (;;) {
      const { code, stderr } = await this.webdfs(0, 'mb', `s3://${name}`);
      if (code === 0) return;
      if (performance.now() > until) throw new Error(`bucket ${name} was not made within ${withinMs} ms: ${stderr}`);
    }
  }

  /** As whichever node answers sees the cluster. */
  async status(): Promise<StatusReport> {
    let failure: unknown;
    for (let i = 0; i < this.#machines.length; i++) {
      using client = this.client(1, i);
      try {
        const signal = AbortSignal.timeout(5_000);
        return JSON.parse((await client.call({ method: 'GET', bucket: '-', key: 'status', signal })).body);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  /** Waits until every node is up, and every group whole and served. */
  async whole(withinMs = 180_000): Promise<StatusReport> {
    const until = performance.now() + withinMs;
    for (;;) {
      const status = await this.status().catch(() => undefined);
      const { total = 1, whole = 0, withoutPrimary = 1 } = status?.groups ?? {};
      const allUp = status?.nodes.every((node) => node.state === 'up') === true;
      if (status !== undefined && allUp && whole === total && withoutPrimary === 0) return status;
      if (performance.now() > until) {
        throw new Error(`not whole after ${withinMs} ms: ${JSON.stringify(status)}\n${this.log}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#machines.map((_, i) => this.stopMachine(i)));
    this.#rites[Symbol.dispose]();
    if (this.#owned !== '') await rm(this.#owned, { recursive: true, force: true });
  }
}
