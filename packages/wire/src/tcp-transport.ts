import { type Clock, type Log, type NodeId, type Random, utf8 } from '@webdfs/base';
import { type Limits, LIMITS } from './limits.ts';
import { NodeTransport } from './node-transport.ts';
import { TcpNetwork } from './tcp-network.ts';
import { type Certificates, certificateSockets } from './tls-certificates.ts';
import { tlsSockets } from './tls-sockets.ts';
import type { Handlers } from './transport.ts';

export interface TcpTransportOptions {
  readonly self: NodeId;
  /** 32 hex digits. */
  readonly cluster: string;
  /** The cluster secret, 32 random bytes. */
  readonly secret: Uint8Array;
  /** Secrets that peers may still have, or already have, while the secret is being changed. */
  readonly otherSecrets?: readonly Uint8Array[];
  readonly host: string;
  /** 0: any that is free; `Transport.address` tells. */
  readonly port: number;
  readonly handlers: Handlers;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly limits?: Partial<Limits>;
  /** TLS 1.3 with a key from the cluster secret; all nodes of a cluster alike. Default: plain. */
  readonly tls?: boolean;
  /** TLS 1.3 with certificates instead, all nodes of a cluster alike: the secret proves nothing then. */
  readonly certificates?: Certificates;
  /** Overwrites pieces of bodies when they are released; for tests. */
  readonly poison?: boolean;
}

/**
 * Links over TCP. Plain: both ends prove at the start that they know the cluster secret, and whoever can write into the
 * connection later is believed, so this is for loopback and for networks that the operator trusts. With `tls` nobody else
 * can read or write on it either (5 ms of CPU more per 10 MiB and hop).
 *
 * @throws BAD_CONFIG if the address cannot be listened on, or the certificates do not fit together
 */
export async function openTcpTransport(options: TcpTransportOptions): Promise<NodeTransport> {
  const { self, cluster, host, port, certificates } = options;
  const limits = { ...LIMITS, ...options.limits };
  if (certificates !== undefined) {
    const network = await TcpNetwork.open(host, port, certificateSockets(certificates, limits));
    // both ends are proved already: what the greeting proves is the cluster's id
    return new NodeTransport({ ...options, secrets: [utf8(cluster)], limits, network });
  }
  let transport: NodeTransport | undefined = undefined;
  const given = [options.secret, ...(options.otherSecrets ?? [])];
  const secrets = (): readonly Uint8Array[] => transport?.secrets ?? given;
  const network =
    options.tls === true
      ? await TcpNetwork.open(host, port, tlsSockets({ self, cluster, secrets, limits }))
      : await TcpNetwork.open(host, port);
  transport = new NodeTransport({ ...options, secrets: given, limits, network });
  return transport;
}
