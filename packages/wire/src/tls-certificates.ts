import type * as net from 'node:net';
import * as tls from 'node:tls';
import { messageOf, WebdfsError } from '@webdfs/base';
import type { Limits } from './limits.ts';
import type { Sockets } from './tcp-network.ts';
import { boundHandshakes } from './tls-sockets.ts';

/** What a node proves itself by, where links go by certificates: PEM, each one or several in a row. */
export interface Certificates {
  /** Of who signs the certificates of nodes; nothing else is trusted. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** The cluster's name: certificates of other clusters, and of other roles, are refused though the same authority signed them. */
  readonly clusterName: string;
}

/** The URI that the certificate of a node has among its alternative names. */
export function nodeUri(clusterName: string): string {
  return `webdfs://${clusterName}/node`;
}

/** Why a certificate is no node's of this cluster, if it is not. Its signature and its dates were checked before. */
function refusalOf(certificate: tls.PeerCertificate, clusterName: string): WebdfsError | undefined {
  const names = (certificate.subjectaltname ?? '').split(', ');
  const wanted = nodeUri(clusterName);
  if (names.includes(`URI:${wanted}`)) return undefined;
  return new WebdfsError('ACCESS_DENIED', `the peer's certificate does not name ${wanted}`);
}

/**
 * TLS 1.3 with certificates on both ends, of one private authority: for operators who have one, instead of the secret that all
 * nodes of a cluster share. A host's name is not looked at: nodes have addresses, and their certificates name what they are.
 *
 * @throws BAD_CONFIG if certificate, key and authority do not fit together
 */
export function certificateSockets({ ca, cert, key, clusterName }: Certificates, limits: Limits): Sockets {
  const secureContext = contextOf({ ca, cert, key });
  const server = tls.createServer({
    ca,
    cert,
    key,
    minVersion: 'TLSv1.3',
    noDelay: true,
    handshakeTimeout: limits.handshakeMs,
    requestCert: true,
    rejectUnauthorized: true,
  });
  const endHandshakes = boundHandshakes(server, limits.maxStrangers);
  return {
    server,
    event: 'secureConnection',
    isWelcome: (socket) => refusalOf((socket as tls.TLSSocket).getPeerCertificate(), clusterName) === undefined,
    endHandshakes,
    connect: (where: net.TcpNetConnectOpts) =>
      tls.connect({
        ...where,
        secureContext,
        minVersion: 'TLSv1.3',
        rejectUnauthorized: true,
        checkServerIdentity: (_host, certificate) => refusalOf(certificate, clusterName),
      } as tls.ConnectionOptions),
  };
}

function contextOf(options: { readonly ca: string; readonly cert: string; readonly key: string }): tls.SecureContext {
  try {
    return tls.createSecureContext({ ...options, minVersion: 'TLSv1.3' });
  } catch (error) {
    throw new WebdfsError('BAD_CONFIG', `the node's certificate, its key or its authority: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
