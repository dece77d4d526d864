import { createHash, hkdfSync } from 'node:crypto';
import type * as net from 'node:net';
import * as tls from 'node:tls';
import { fromHex, type NodeId, toHex, utf8 } from '@webdfs/base';
import type { Limits } from './limits.ts';
import type { Sockets } from './tcp-network.ts';

const CIPHER = 'TLS_AES_128_GCM_SHA256';
const KEY_BYTES = 32;

export interface TlsOptions {
  readonly self: NodeId;
  /** 32 hex digits. */
  readonly cluster: string;
  /**
   * Asked at each connection. The present secret first: it is what this node dials with, the others in turn where that is
   * not known yet or no more; from others it accepts all.
   */
  readonly secrets: () => readonly Uint8Array[];
  readonly limits: Limits;
}

/** Addresses of which it is known how many keys were tried. */
const MAX_ADDRESSES = 4_096;

/** The pre-shared key of a secret: HKDF-SHA256(secret, salt = cluster id, info = "webdfs wire 1 tls"). */
function presharedKey(secret: Uint8Array, cluster: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, fromHex(cluster), utf8('webdfs wire 1 tls'), KEY_BYTES));
}

/** Which key it is, telling nothing about it: the first 4 bytes of its SHA-256. */
function nameOf(key: Uint8Array): string {
  return toHex(createHash('sha256').update(key).digest().subarray(0, 4));
}

/**
 * TLS 1.3 with a pre-shared key derived from the cluster secret, and an ephemeral exchange: no certificates to run, forward
 * secrecy, and whoever writes on a connection is whoever opened it. Identity: `cluster:node:name of the key`.
 *
 * Source: RFC 8446, sections 2.2 and 4.2.11.
 */
export function tlsSockets(options: TlsOptions): Sockets {
  const { cluster, self, limits } = options;
  const keys = (): Uint8Array[] => options.secrets().map((secret) => presharedKey(secret, cluster));
  const tried = new Map<string, number>();
  const server = tls.createServer({
    minVersion: 'TLSv1.3',
    ciphers: CIPHER,
    noDelay: true,
    handshakeTimeout: limits.handshakeMs,
    pskCallback: (_socket, identity) => {
      const [theirCluster, , name] = identity.split(':');
      return (theirCluster === cluster && keys().find((key) => nameOf(key) === name)) || null;
    },
  });
  const endHandshakes = boundHandshakes(server, limits.maxStrangers);
  return {
    server,
    event: 'secureConnection',
    endHandshakes,
    connect: (where: net.TcpNetConnectOpts) => {
      const address = `${where.host} ${where.port}`;
      const present = keys();
      const turn = tried.get(address) ?? 0;
      const psk = present[turn % present.length]!;
      if (tried.size >= MAX_ADDRESSES) tried.clear();
      tried.set(address, turn + 1);
      const socket = tls.connect({
        ...where,
        minVersion: 'TLSv1.3',
        ciphers: CIPHER,
        pskCallback: () => ({ identity: `${cluster}:${self}:${nameOf(psk)}`, psk }),
        // There is no certificate to look at; the greeting checks which node it is.
        checkServerIdentity: () => undefined,
      } as tls.ConnectionOptions);
      socket.once('secureConnect', () => tried.delete(address));
      return socket;
    },
  };
}

/**
 * At most so many connections may be between accept and the end of their handshake. Returns how to end all of them.
 * A raw socket and the TLS socket around it are told to be one by the port at their other end.
 */
export function boundHandshakes(server: tls.Server, most: number): () => void {
  const underWay = new Map<string, net.Socket>();
  const otherEndOf = (socket: net.Socket): string => `${socket.remoteAddress} ${socket.remotePort}`;
  server.on('connection', (socket: net.Socket) => {
    const otherEnd = otherEndOf(socket);
    if (underWay.size >= most) {
      socket.destroy();
      return;
    }
    underWay.set(otherEnd, socket);
    socket.on('close', () => {
      if (underWay.get(otherEnd) === socket) underWay.delete(otherEnd);
    });
  });
  server.on('secureConnection', (socket) => underWay.delete(otherEndOf(socket)));
  return () => {
    for (const socket of underWay.values()) socket.destroy();
  };
}
