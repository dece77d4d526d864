import { connect, createServer, type Server, type Socket } from 'node:net';
import { assert, type Clock, crc32c, type NodeId, TokenBucket, WebdfsError } from '@webdfs/base';
import type { Transfer } from '@webdfs/rescale';
import type { Network } from '../parts.ts';

/*
 * What goes over a connection, all little-endian:
 *
 *   wish, from the receiver            piece, to the receiver
 *   offset  size  field                offset  size  field
 *        0     4  parcel                    0     4  parcel
 *        4     4  receiver's node id        4     4  length of the payload, 0..MAX_PIECE
 *                                           8     4  crc32c of the payload
 *                                          12     n  payload
 */
const WISH_BYTES = 8;
const PIECE_HEADER_BYTES = 12;
const MAX_PIECE = 8_388_608;

/** What happens here because of another process. */
export interface Arrivals {
  asked(transfer: Transfer): void;
  received(transfer: Transfer, payload: Uint8Array): void;
}

/** Collects what comes on a connection and gives it out in whole messages. */
function onMessages(
  socket: Socket,
  lengthOf: (head: Buffer) => number | undefined,
  message: (whole: Buffer) => void,
): void {
  let pending: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    for (let length = lengthOf(pending); length !== undefined && pending.length >= length; length = lengthOf(pending)) {
      message(pending.subarray(0, length));
      pending = pending.subarray(length);
    }
  });
}

/** One node's part of a network: real sockets between processes, each way no faster than a cap; every piece has a checksum. */
export class SocketNetwork implements Network {
  readonly #node: NodeId;
  readonly #arrivals: Arrivals;
  readonly #sending: TokenBucket;
  readonly #receiving: TokenBucket;
  readonly #server: Server;
  /** Connections that this node opened, by the node that serves. */
  readonly #suppliers = new Map<NodeId, Socket>();
  /** Where a node that asked gets its answer. */
  readonly #askers = new Map<NodeId, Socket>();
  readonly #transfers = new Map<string, Transfer>();

  constructor(
    node: NodeId,
    transfers: readonly Transfer[],
    setup: { readonly rate: number; readonly clock: Clock; readonly arrivals: Arrivals },
  ) {
    this.#node = node;
    this.#arrivals = setup.arrivals;
    this.#sending = new TokenBucket(setup.rate, setup.clock);
    this.#receiving = new TokenBucket(setup.rate, setup.clock);
    for (const transfer of transfers) this.#transfers.set(`${transfer.parcel}>${transfer.to}`, transfer);
    this.#server = createServer({ noDelay: true }, (socket) => {
      onMessages(
        socket,
        (head) => (head.length < WISH_BYTES ? undefined : WISH_BYTES),
        (wish) => this.#wished(socket, wish),
      );
    });
  }

  /** @returns the port on loopback where others reach this node */
  async listen(): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject).listen(0, '127.0.0.1', resolve);
    await promise;
    const address = this.#server.address();
    assert(typeof address === 'object' && address !== null, 'a listening socket has an address');
    return address.port;
  }

  /** Connects to every node that this one gets something from. */
  async connect(ports: ReadonlyMap<NodeId, number>): Promise<void> {
    const own = [...this.#transfers.values()].filter(({ to }) => to === this.#node);
    for (const supplier of new Set(own.map(({ from }) => from))) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const socket = connect({ port: ports.get(supplier)!, host: '127.0.0.1', noDelay: true }, resolve);
      socket.once('error', reject);
      await promise;
      onMessages(socket, pieceLength, (piece) => this.#arrived(piece));
      this.#suppliers.set(supplier, socket);
    }
  }

  ask({ parcel, from, to }: Transfer): void {
    const wish = Buffer.alloc(WISH_BYTES);
    wish.writeUInt32LE(parcel, 0);
    wish.writeUInt32LE(to, 4);
    this.#suppliers.get(from)!.write(wish);
  }

  send({ parcel, to, bytes }: Transfer, payload: Uint8Array, on: { sent: () => void }): void {
    this.#sending.take(bytes, () => {
      const header = Buffer.alloc(PIECE_HEADER_BYTES);
      header.writeUInt32LE(parcel, 0);
      header.writeUInt32LE(payload.length, 4);
      header.writeUInt32LE(crc32c(payload), 8);
      const socket = this.#askers.get(to)!;
      socket.cork();
      socket.write(header);
      socket.write(payload);
      socket.uncork();
      on.sent();
    });
  }

  close(): void {
    for (const socket of [...this.#suppliers.values(), ...this.#askers.values()]) socket.destroy();
    this.#server.close();
  }

  #wished(socket: Socket, wish: Buffer): void {
    const [parcel, to] = [wish.readUInt32LE(0), wish.readUInt32LE(4)];
    const transfer = this.#transfers.get(`${parcel}>${to}`);
    if (transfer?.from !== this.#node)
      throw new WebdfsError('WRONG_PEER', `nobody planned parcel ${parcel} for node ${to}`);
    this.#askers.set(transfer.to, socket);
    this.#arrivals.asked(transfer);
  }

  #arrived(piece: Buffer): void {
    const parcel = piece.readUInt32LE(0);
    const payload = new Uint8Array(piece.subarray(PIECE_HEADER_BYTES));
    if (crc32c(payload) !== piece.readUInt32LE(8)) {
      throw new WebdfsError('WIRE_CORRUPT', `parcel ${parcel} has another checksum than when it was sent`);
    }
    const transfer = this.#transfers.get(`${parcel}>${this.#node}`);
    if (transfer === undefined) throw new WebdfsError('WRONG_PEER', `nobody planned parcel ${parcel} for this node`);
    this.#receiving.take(payload.length, () => this.#arrivals.received(transfer, payload));
  }
}

function pieceLength(head: Buffer): number | undefined {
  if (head.length < PIECE_HEADER_BYTES) return undefined;
  const length = head.readUInt32LE(4);
  if (length > MAX_PIECE) throw new WebdfsError('WIRE_CORRUPT', `a piece of ${length} bytes, allowed are ${MAX_PIECE}`);
  return PIECE_HEADER_BYTES + length;
}
