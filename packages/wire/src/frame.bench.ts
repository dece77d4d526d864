/**
 * What frames cost: CPU of both processes together, beside a bare socket that does the least for the same work.
 *
 * node --conditions=webdfs:source packages/wire/src/frame.bench.ts [seconds per row] [part of the rows' names]
 */
import { type ChildProcess, fork } from 'node:child_process';
import * as net from 'node:net';
import { asNodeId, silentLog, systemClock, SystemRandom, utf8 } from '@webdfs/base';
import { type Handlers, type Link, type Message, NO_ATTACHMENT, openTcpTransport, type Piece } from './index.ts';
import type { NodeTransport } from './node-transport.ts';

const RECORD_BYTES = 4096;
const BODY_BYTES = 10 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;
const SECRET = new Uint8Array(32).fill(7);
const EMPTY_MESSAGE: Message = { head: utf8('ok'), attached: NO_ATTACHMENT };
const record: Message = { head: new Uint8Array(96).fill(1), attached: [new Uint8Array(RECORD_BYTES).fill(2)] };
const pieceBytes = new Uint8Array(PIECE_BYTES).fill(3);
const deadline = { deadlineMs: 30_000 };

/** CPU of this process so far, µs. */
const cpu = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

const piece = (): Piece => ({ bytes: pieceBytes, hold: () => undefined, release: () => undefined });

/** Verb 2 tells this process's CPU so far; posts of verb 4 are answered by a post. */
function handlers(onPost: () => void): Handlers {
  return {
    call: (verb) => (verb === 2 ? { head: utf8(String(cpu())), attached: NO_ATTACHMENT } : EMPTY_MESSAGE),
    post: () => onPost(),
    receive: async (_verb, _message, body) => {
      for (;;) {
        const one = body.take();
        if (one !== undefined) one.release();
        else if (body.ended) return EMPTY_MESSAGE;
        else await body.ready();
      }
    },
    serve: async (_verb, _message, body) => {
      for (let sent = 0; sent < BODY_BYTES; sent += PIECE_BYTES) if (!body.write(piece())) await body.ready();
      return EMPTY_MESSAGE;
    },
  };
}

async function node(id: number, onPost: () => void): Promise<NodeTransport> {
  return await openTcpTransport({
    self: asNodeId(id),
    cluster: 'ab'.repeat(16),
    secret: SECRET,
    host: '127.0.0.1',
    port: 0,
    handlers: handlers(onPost),
    clock: systemClock,
    random: new SystemRandom(),
    log: silentLog,
  });
}

/** The other process: one node, and a bare server that answers 64 bytes to each 4 112 and swallows longer streams. */
async function peer(): Promise<void> {
  const transport = await node(2, () => transport.link(asNodeId(1)).post(5, EMPTY_MESSAGE));
  const bare = net.createServer({ noDelay: true }, (socket) => {
    let pending = 0;
    const answer = new Uint8Array(64);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      pending += chunk.length;
      const count = Math.floor(pending / (RECORD_BYTES + 16));
      pending -= count * (RECORD_BYTES + 16);
      if (count > 0) socket.write(count === 1 ? answer : new Uint8Array(64 * count));
    });
  });
  const pooled = net.createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => sendBare(socket, () => undefined));
  });
  bare.listen(0, '127.0.0.1', () => {
    pooled.listen(0, '127.0.0.1', () => {
      const [a, b] = [bare.address() as net.AddressInfo, pooled.address() as net.AddressInfo];
      process.send!({ address: transport.address, bare: a.port, pooled: b.port });
    });
  });
  process.on('message', (message: { address?: string }) => {
    if (message.address === undefined) process.send!({ cpu: cpu() });
    else transport.setPeers(new Map([[asNodeId(1), message.address]]));
  });
}

function sendBare(socket: net.Socket, done: () => void): void {
  let sent = 0;
  const more = (): void => {
    while (sent < BODY_BYTES && socket.writableLength < PIECE_BYTES) {
      sent += PIECE_BYTES;
      socket.write(pieceBytes, sent < BODY_BYTES ? more : done);
    }
  };
  more();
}

interface Row {
  readonly name: string;
  /** Does one piece of work. */
  readonly once: () => Promise<void>;
  readonly underWay: number;
}

async function childCpu(child: ChildProcess): Promise<number> {
  return await new Promise((resolve) => {
    child.once('message', (message) => resolve((message as { cpu: number }).cpu));
    child.send({});
  });
}

/** CPU µs of both processes per piece of work. */
async function measure(child: ChildProcess, row: Row, seconds: number): Promise<{ each: number; count: number }> {
  let until = systemClock.monotonic() + 300;
  let count = 0;
  const loop = async (): Promise<void> => {
    while (systemClock.monotonic() < until) {
      await row.once();
      count++;
    }
  };
  const run = (): Promise<unknown> => Promise.all(Array.from({ length: row.underWay }, loop));
  await run();
  count = 0;
  const before = cpu() + (await childCpu(child));
  until = systemClock.monotonic() + seconds * 1000;
  await run();
  return { each: (cpu() + (await childCpu(child)) - before) / count, count };
}

/** Calls over a bare socket: answers come in order. */
function bareCaller(port: number): Promise<() => Promise<void>> {
  const waiting: (() => void)[] = [];
  const head = new Uint8Array(16);
  let pending = 0;
  const socket = net.connect({ host: '127.0.0.1', port, noDelay: true });
  socket.on('data', (chunk) => {
    pending += chunk.length;
    for (; pending >= 64; pending -= 64) waiting.shift()!();
  });
  const once = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve);
      socket.cork();
      socket.write(head);
      socket.write(record.attached[0]!);
      process.nextTick(() => socket.uncork());
    });
  return new Promise((resolve) => socket.on('connect', () => resolve(once)));
}

/** Asks for 10 MiB over a bare socket and reads it into one buffer. */
function bareFetcher(port: number): Promise<() => Promise<void>> {
  let left = 0;
  let done = (): void => undefined;
  const callback = (count: number): boolean => {
    left -= count;
    if (left === 0) done();
    return true;
  };
  const socket = net.connect({
    host: '127.0.0.1',
    port,
    noDelay: true,
    onread: { buffer: new Uint8Array(PIECE_BYTES), callback },
  });
  const once = (): Promise<void> =>
    new Promise((resolve) => {
      left = BODY_BYTES;
      done = resolve;
      socket.write('x');
    });
  return new Promise((resolve) => socket.on('connect', () => resolve(once)));
}

async function sendBody(link: Link): Promise<void> {
  const { body, answer } = link.send(1, EMPTY_MESSAGE, deadline);
  for (let sent = 0; sent < BODY_BYTES; sent += PIECE_BYTES) if (!body.write(piece())) await body.ready();
  body.end();
  await answer;
}

async function fetchBody(link: Link): Promise<void> {
  const { body, answer } = link.fetch(1, EMPTY_MESSAGE, deadline);
  while (!body.ended) {
    const one = body.take();
    if (one === undefined) await body.ready();
    else one.release();
  }
  await answer;
}

async function main(): Promise<void> {
  const seconds = Number(process.argv[2] ?? 2);
  const child = fork(import.meta.filename, ['peer']);
  const ports = await new Promise<{ address: string; bare: number; pooled: number }>((resolve) =>
    child.once('message', (message) => resolve(message as { address: string; bare: number; pooled: number })),
  );
  const answered: (() => void)[] = [];
  const transport = await node(1, () => answered.shift()?.());
  const up = new Promise<void>((resolve) => transport.onChange(() => resolve()));
  child.send({ address: transport.address });
  transport.setPeers(new Map([[asNodeId(2), ports.address]]));
  await up;
  const link = transport.link(asNodeId(2));
  const call = async (): Promise<void> => void (await link.call(1, record, deadline));
  const post = (): Promise<void> =>
    new Promise((resolve) => {
      answered.push(resolve);
      link.post(4, record);
    });
  const bare = await bareCaller(ports.bare);
  const bareFetch = await bareFetcher(ports.pooled);
  const small = [1, 8, 32].flatMap((underWay): Row[] => [
    { name: `bare socket, 4 KiB and an answer, ${underWay} under way, µs`, once: bare, underWay },
    { name: `call, 4 KiB, ${underWay} under way, µs`, once: call, underWay },
    { name: `post, 4 KiB, and a post back, ${underWay} under way, µs`, once: post, underWay },
  ]);
  const large: Row[] = [
    { name: 'bare socket into one buffer, 10 MiB, µs', once: bareFetch, underWay: 1 },
    { name: 'send, 10 MiB, µs', once: () => sendBody(link), underWay: 1 },
    { name: 'fetch, 10 MiB, µs', once: () => fetchBody(link), underWay: 1 },
    { name: 'send, 10 MiB, 8 under way, µs', once: () => sendBody(link), underWay: 8 },
  ];
  console.log(`CPU of both processes, Node ${process.version}, ${seconds} s a row`);
  for (const row of [...small, ...large].filter(({ name }) => name.includes(process.argv[3] ?? ''))) {
    const { each, count } = await measure(child, row, seconds);
    console.log(`${row.name.padEnd(56)} ${each.toFixed(1).padStart(9)}   (${count})`);
  }
  await transport[Symbol.asyncDispose]();
  child.kill();
}

await (process.argv[2] === 'peer' ? peer() : main());
