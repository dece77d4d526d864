import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { EtcdAddress } from './address.ts';

/** Real members of etcd on loopback, for tests: started, killed, paused, started again. */

/** Why tests with etcd cannot run here, if they cannot. */
export function etcdMissing(): string | false {
  const found = spawnSync('etcd', ['--version'], { encoding: 'utf8' });
  return found.error === undefined ? false : 'etcd is not installed (Debian: etcd-server)';
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  return servers.map((server) => {
    const address = server.address();
    server.close();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return address.port;
  });
}

/** Where a process of a test runs: on loopback, or in a network of its own. */
export interface Seat {
  readonly host: string;
  /** Words before the program, such as those that enter a network namespace. */
  readonly command: readonly string[];
}

export interface RunningEtcdOptions {
  readonly members?: number;
  /** One for each member; loopback if not given. */
  readonly seats?: readonly Seat[];
  /** Further arguments of every member. */
  readonly arguments?: readonly string[];
  /** Clients speak TLS; each member makes its own certificate. */
  readonly tls?: boolean;
}

const LOOPBACK: Seat = { host: '127.0.0.1', command: [] };

interface Member {
  readonly seat: Seat;
  readonly words: readonly string[];
  readonly clientPort: number;
  process: ChildProcess | undefined;
}

const READY_MS = 20_000;

export class RunningEtcd implements AsyncDisposable {
  readonly #folder: string;
  readonly #members: readonly Member[];
  readonly #tls: boolean;
  /** Whoever ends the process of a test ends its members. */
  readonly #atExit = (): void => {
    for (const member of this.#members) member.process?.kill('SIGKILL');
  };

  private constructor(folder: string, members: readonly Member[], tls: boolean) {
    this.#folder = folder;
    this.#members = members;
    this.#tls = tls;
    process.on('exit', this.#atExit);
  }

  static async start(options: RunningEtcdOptions = {}): Promise<RunningEtcd> {
    const { seats = [], tls = false } = options;
    const count = options.members ?? Math.max(1, seats.length);
    const seatOf = (i: number): Seat => seats[i] ?? LOOPBACK;
    const folder = await mkdtemp(join(tmpdir(), 'webdfs-etcd-'));
    const ports = await freePorts(2 * count);
    const peerOf = (i: number): string => `http://${seatOf(i).host}:${ports[2 * i + 1]}`;
    const initial = Array.from({ length: count }, (_, i) => `m${i}=${peerOf(i)}`).join(',');
    const members = Array.from({ length: count }, (_, i): Member => {
      const client = `${tls ? 'https' : 'http'}://${seatOf(i).host}:${ports[2 * i]}`;
      const words = [
        `--name=m${i}`,
        `--data-dir=${join(folder, `m${i}`)}`,
        '--log-level=error',
        `--listen-client-urls=${client}`,
        `--advertise-client-urls=${client}`,
        `--listen-peer-urls=${peerOf(i)}`,
        `--initial-advertise-peer-urls=${peerOf(i)}`,
        `--initial-cluster=${initial}`,
        ...(tls ? ['--auto-tls'] : []),
        ...(options.arguments ?? []),
      ];
      return { seat: seatOf(i), words, clientPort: ports[2 * i]!, process: undefined };
    });
    const etcd = new RunningEtcd(folder, members, tls);
    try {
      for (let i = 0; i < count; i++) etcd.#spawn(i);
      await etcd.ready();
    } catch (error) {
      await etcd[Symbol.asyncDispose]();
      throw error;
    }
    return etcd;
  }

  get hosts(): readonly string[] {
    return this.#members.map(({ seat, clientPort }) => `${seat.host}:${clientPort}`);
  }

  get address(): EtcdAddress {
    return { hosts: this.hosts, tls: this.#tls };
  }

  /** As the command line takes it. */
  get url(): string {
    return `${this.#tls ? 'etcds' : 'etcd'}://${this.hosts.join(',')}`;
  }

  /** The certificate of a member that speaks TLS, in PEM; it has signed itself. */
  async certificate(i: number): Promise<string> {
    return await readFile(join(this.#folder, `m${i}`, 'fixtures', 'client', 'cert.pem'), 'utf8');
  }

  #spawn(i: number): void {
    const member = this.#members[i]!;
    const [program, ...words] = [...member.seat.command, 'etcd', ...member.words];
    member.process = spawn(program!, words, { stdio: ['ignore', 'ignore', 'pipe'] });
    member.process.stderr?.resume();
  }

  /** Resolves when the members can write. With TLS only looks at the ports. */
  async ready(): Promise<void> {
    const until = performance.now() + READY_MS;
    while (!(await this.#answers())) {
      if (performance.now() > until) throw new Error(`etcd did not answer within ${READY_MS} ms`);
      await pause(50);
    }
  }

  async #answers(): Promise<boolean> {
    if (this.#tls) {
      const socket = connect(this.#members[0]!.clientPort, this.#members[0]!.seat.host);
      const [outcome] = await Promise.race([
        once(socket, 'connect').then(() => [true]),
        once(socket, 'close').then(() => [false]),
      ]).catch(() => [false]);
      socket.destroy();
      return outcome === true;
    }
    return (await this.leader()) !== undefined;
  }

  /** Asks a member something of its JSON gateway; undefined if it does not answer. */
  async ask(i: number, path: string, body: unknown): Promise<Record<string, unknown> | undefined> {
    try {
      const answer = await fetch(`http://${this.hosts[i]}/v3/${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(1_000),
      });
      return (await answer.json()) as Record<string, unknown>;
    } catch {
      return undefined;
    }
  }

  /** The member that leads, once a majority agrees on one. */
  async leader(): Promise<number | undefined> {
    const told = await Promise.all(this.#members.map((_, i) => this.ask(i, 'maintenance/status', {})));
    const leaders = told.map((status) => status?.['leader']).filter((leader) => leader !== undefined && leader !== '0');
    const leader = leaders.find((each) => leaders.filter((other) => other === each).length * 2 > told.length);
    const index = told.findIndex((status) => (status?.['header'] as Record<string, unknown>)?.['member_id'] === leader);
    return leader === undefined || index < 0 ? undefined : index;
  }

  /** SIGKILL, and waits for the end. */
  async kill(i: number): Promise<void> {
    const child = this.#members[i]!.process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** SIGSTOP, to be ended by `resume`. */
  pause(i: number): void {
    this.#members[i]!.process?.kill('SIGSTOP');
  }

  resume(i: number): void {
    this.#members[i]!.process?.kill('SIGCONT');
  }

  /** Starts a member that was killed, on its data. */
  restart(i: number): void {
    this.#spawn(i);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((_, i) => this.kill(i)));
    process.off('exit', this.#atExit);
    await rm(this.#folder, { recursive: true, force: true });
  }
}
