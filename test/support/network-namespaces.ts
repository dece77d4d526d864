import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import type { Seat } from '@webdfs/cluster/testing';
import { atTheEnd } from './last-rites.ts';
import { isRunning } from './is-running.ts';

/** Machines as far as the network can tell: one network namespace each, on a bridge that the tests stand at too. */

const run = promisify(execFile);
const DEVICE = 'eth0';

async function ip(...words: string[]): Promise<string> {
  return (await run('ip', words)).stdout;
}

/** Names of namespaces, by the process that made them. */
const NAME = /^wd(\d+)-\d+$/;

function namespaces(): string[] {
  const { stdout } = spawnSync('ip', ['netns', 'list'], { encoding: 'utf8' });
  return stdout.split('\n').map((line) => line.split(' ')[0] ?? '');
}

/** Ends what runs in these networks, and the networks, waiting for nothing but the system. */
function remove(names: readonly string[], prefix: string): void {
  for (const name of names) {
    const { stdout } = spawnSync('ip', ['netns', 'pids', name], { encoding: 'utf8' });
    for (const pid of stdout.split('\n').filter((line) => line !== '')) endProcess(Number(pid));
    spawnSync('ip', ['netns', 'delete', name]);
  }
  spawnSync('ip', ['link', 'delete', `${prefix}-br`]);
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended by itself
  }
}

/** Networks of tests that were killed before they could take them away. */
function removeStale(): void {
  const makers = new Set(namespaces().flatMap((name) => NAME.exec(name)?.[1] ?? []));
  for (const maker of makers) {
    if (isRunning(Number(maker))) continue;
    const prefix = `wd${maker}`;
    remove(
      namespaces().filter((name) => name.startsWith(`${prefix}-`)),
      prefix,
    );
  }
}

/** Why this machine cannot make networks, if it cannot. */
export function namespacesMissing(): string | false {
  const name = `webdfs-try-${process.pid}`;
  const made = spawnSync('ip', ['netns', 'add', name], { encoding: 'utf8' });
  if (made.error !== undefined) return 'ip is not installed (Debian: iproute2)';
  if (made.status !== 0) return `network namespaces cannot be made here: ${made.stderr.trim()}`;
  spawnSync('ip', ['netns', 'delete', name]);
  return false;
}

export class NetworkNamespaces implements AsyncDisposable {
  readonly count: number;
  /** Names of devices have at most 15 characters. */
  readonly #prefix = `wd${process.pid}`;
  readonly #subnet = `10.${64 + (process.pid % 128)}.${(process.pid >> 7) % 256}`;

  readonly #rites: Disposable;

  private constructor(count: number) {
    this.count = count;
    this.#rites = atTheEnd(() => this.#remove());
  }

  static async create(count: number): Promise<NetworkNamespaces> {
    removeStale();
    const network = new NetworkNamespaces(count);
    try {
      await ip('link', 'add', network.#bridge, 'type', 'bridge');
      await ip('address', 'add', `${network.#subnet}.254/24`, 'dev', network.#bridge);
      await ip('link', 'set', network.#bridge, 'up');
      for (let i = 0; i < count; i++) await network.#join(i);
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
    return network;
  }

  get #bridge(): string {
    return `${this.#prefix}-br`;
  }

  #name(i: number): string {
    return `${this.#prefix}-${i}`;
  }

  #host(i: number): string {
    return `${this.#subnet}.${i + 1}`;
  }

  async #join(i: number): Promise<void> {
    const name = this.#name(i);
    await ip('netns', 'add', name);
    await ip('link', 'add', name, 'type', 'veth', 'peer', 'name', DEVICE, 'netns', name);
    await ip('link', 'set', name, 'master', this.#bridge, 'up');
    await this.#within(i, 'address', 'add', `${this.#host(i)}/24`, 'dev', DEVICE);
    await this.#within(i, 'link', 'set', DEVICE, 'up');
    await this.#within(i, 'link', 'set', 'lo', 'up');
  }

  async #within(i: number, ...words: string[]): Promise<void> {
    await ip('-netns', this.#name(i), ...words);
  }

  seat(i: number): Seat {
    return { host: this.#host(i), command: ['ip', 'netns', 'exec', this.#name(i)] };
  }

  /** What `from` sends to `to` is lost; the other direction goes on. */
  async cutOneWay(from: number, to: number): Promise<void> {
    await this.#within(from, 'route', 'replace', 'blackhole', `${this.#host(to)}/32`);
  }

  async healOneWay(from: number, to: number): Promise<void> {
    // it may not be cut
    await this.#within(from, 'route', 'delete', 'blackhole', `${this.#host(to)}/32`).catch(() => undefined);
  }

  /** Nothing passes between the machines of one side and those of the other; the tests reach both. */
  async cut(side: readonly number[], other: readonly number[]): Promise<void> {
    for (const a of side) {
      for (const b of other) {
        await this.cutOneWay(a, b);
        await this.cutOneWay(b, a);
      }
    }
  }

  /** Everything passes again. */
  async heal(): Promise<void> {
    for (let a = 0; a < this.count; a++) {
      for (let b = 0; b < this.count; b++) if (a !== b) await this.healOneWay(a, b);
    }
  }

  /** What machine `i` sends crawls, in kilobits per second. */
  async slow(i: number, kilobits: number): Promise<void> {
    const words = [
      'add',
      'dev',
      DEVICE,
      'root',
      'tbf',
      'rate',
      `${kilobits}kbit`,
      'burst',
      '32kbit',
      'latency',
      '400ms',
    ];
    await run('tc', ['-netns', this.#name(i), 'qdisc', ...words]);
  }

  async fast(i: number): Promise<void> {
    await run('tc', ['-netns', this.#name(i), 'qdisc', 'delete', 'dev', DEVICE, 'root']).catch(() => undefined);
  }

  #remove(): void {
    remove(
      Array.from({ length: this.count }, (_, i) => this.#name(i)),
      this.#prefix,
    );
  }

  /** Ends what still runs in the networks, and the networks. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#rites[Symbol.dispose]();
    this.#remove();
  }
}
