import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { systemClock } from '@webdfs/base';
import { S3Client, type StatusReport } from '@webdfs/webdfs';

/** Starts the real program in a folder of its own, as a user would, and gives what its `--json` line says. */

const run = promisify(execFile);
/** The program, from source. */
export const MAIN = new URL('../../packages/cli/src/main.ts', import.meta.url).pathname;
export const FLAGS = ['--conditions=webdfs:source', '--disable-warning=ExperimentalWarning'];
const READY_MS = 60_000;
const STOP_MS = 60_000;

export interface ReadyNode {
  id: number;
  pid: number;
  address: string;
  data: string;
}

export interface Ready {
  ready: true;
  endpoint: string;
  accessKeyId: string;
  secretAccessKey: string;
  nodes: ReadyNode[];
}

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export interface UpOptions {
  nodes?: number;
  data?: string;
  port?: number;
  arguments?: readonly string[];
  environment?: Readonly<Record<string, string>>;
}

/** A cluster that runs in processes of its own; disposing of it stops them and removes their folder. */
export class RunningCluster implements AsyncDisposable {
  readonly ready: Ready;
  readonly data: string;
  readonly port: number;
  readonly #process: ChildProcess;
  readonly #owned: boolean;
  readonly #log: string[];

  private constructor(options: {
    ready: Ready;
    data: string;
    port: number;
    process: ChildProcess;
    owned: boolean;
    log: string[];
  }) {
    this.ready = options.ready;
    this.data = options.data;
    this.port = options.port;
    this.#process = options.process;
    this.#owned = options.owned;
    this.#log = options.log;
  }

  static async start(options: UpOptions = {}): Promise<RunningCluster> {
    const owned = options.data === undefined;
    const data = options.data ?? (await mkdtemp(join(tmpdir(), 'webdfs-test-')));
    const port = options.port ?? (await freePort());
    const words = ['up', '--json', '--data', data, '--port', String(port), '--nodes', String(options.nodes ?? 3)];
    const child = spawn(process.execPath, [...FLAGS, MAIN, ...words, ...(options.arguments ?? [])], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...cleanEnvironment(), ...options.environment },
    });
    const log: string[] = [];
    createInterface({ input: child.stderr }).on('line', (line) => {
      log.push(line);
      if (log.length > 2000) log.shift();
    });
    const lines = createInterface({ input: child.stdout });
    const first = await Promise.race([
      once(lines, 'line', { signal: AbortSignal.timeout(READY_MS) }),
      once(child, 'exit').then(([code]) => {
        throw new Error(`webdfs up ended with ${code} before it was ready:\n${log.join('\n')}`);
      }),
    ]);
    const ready: Ready = JSON.parse(String(first[0]));
    return new RunningCluster({ ready, data, port, process: child, owned, log });
  }

  get endpoint(): string {
    return this.ready.endpoint;
  }

  /** What clients read from their environment. */
  get environment(): Record<string, string> {
    return {
      AWS_ACCESS_KEY_ID: this.ready.accessKeyId,
      AWS_SECRET_ACCESS_KEY: this.ready.secretAccessKey,
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_EC2_METADATA_DISABLED: 'true',
      WEBDFS_ENDPOINT: this.endpoint,
      WEBDFS_ACCESS_KEY_ID: this.ready.accessKeyId,
      WEBDFS_SECRET_ACCESS_KEY: this.ready.secretAccessKey,
    };
  }

  /** What the processes have logged lately. */
  get log(): string {
    return this.#log.join('\n');
  }

  /** Runs the command line against this cluster. */
  async webdfs(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    return await runProgram(process.execPath, [...FLAGS, MAIN, ...words], this.environment);
  }

  /** A client of its own, to be disposed of. */
  client(connections = 16): S3Client {
    const { accessKeyId, secretAccessKey } = this.ready;
    return new S3Client({
      endpoint: this.endpoint,
      credentials: { accessKeyId, secretAccessKey },
      clock: systemClock,
      connections,
    });
  }

  async status(): Promise<StatusReport> {
    using client = this.client();
    const { body } = await client.call({
      method: 'GET',
      bucket: '-',
      key: 'status',
      signal: AbortSignal.timeout(10_000),
    });
    return JSON.parse(body);
  }

  /** Waits until every node is up, and every group whole and served, asking every quarter second. */
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

  /** Stops everything cleanly; the data stays. */
  async stop(): Promise<number | null> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return this.#process.exitCode;
    const ended = once(this.#process, 'exit', { signal: AbortSignal.timeout(STOP_MS) });
    this.#process.kill('SIGTERM');
    const [code] = await ended;
    return typeof code === 'number' ? code : null;
  }

  /** Ends the supervisor without a word, as the kernel would. */
  async killSupervisor(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.#owned) await rm(this.data, { recursive: true, force: true });
  }
}

/** This machine's environment without what would send a client elsewhere. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(AWS|WEBDFS|RCLONE|RESTIC)_/.test(name)));
}

/** Runs a program to its end. */
export async function runProgram(
  program: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  options: { cwd?: string; timeoutMs?: number } = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    const { stdout, stderr } = await run(program, [...words], {
      env: { ...cleanEnvironment(), ...environment },
      maxBuffer: 256 * 1024 * 1024,
      timeout: options.timeoutMs ?? 600_000,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const failed = error as { code?: number | string; stdout?: string; stderr?: string; message: string };
    return {
      code: typeof failed.code === 'number' ? failed.code : 255,
      stdout: failed.stdout ?? '',
      stderr: `${failed.stderr ?? ''}${typeof failed.code === 'number' ? '' : failed.message}`,
    };
  }
}

/** The same, and it must succeed. */
export async function mustRun(...parameters: Parameters<typeof runProgram>): Promise<string> {
  const { code, stdout, stderr } = await runProgram(...parameters);
  if (code !== 0) {
    throw new Error(
      `${parameters[0]} ${parameters[1].join(' ')} ended with ${code}\n${stdout.slice(-4000)}\n${stderr.slice(-4000)}`,
    );
  }
  return stdout;
}
