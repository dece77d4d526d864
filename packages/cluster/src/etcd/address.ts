import { WebdfsError } from '@webdfs/base';

/** Where etcd is, and who we are there. */
export interface EtcdAddress {
  /** `host:port` of its members; any of them answers for all. */
  readonly hosts: readonly string[];
  readonly tls: boolean;
  readonly user?: string;
  readonly password?: string;
}

const PATTERN = /^(etcds?):\/\/(?:([^@/]*)@)?([^@/?#]+)\/?$/;
const HOST = /^(\[[0-9a-fA-F:]+\]|[\w.-]+)(?::(\d{1,5}))?$/;
const DEFAULT_PORT = 2379;
const MAX_HOSTS = 32;

function hostOf(text: string): string {
  const match = HOST.exec(text);
  const port = match?.[2] === undefined ? DEFAULT_PORT : Number(match[2]);
  if (match === null || port < 1 || port > 65_535) throw new WebdfsError('BAD_CONFIG', `no address of etcd: ${text}`);
  return `${match[1]}:${port}`;
}

/**
 * `etcd://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]`; `etcds://` with TLS. User and password are percent-encoded.
 *
 * @throws BAD_CONFIG, without repeating a password
 */
export function parseEtcdAddress(text: string): EtcdAddress {
  const match = PATTERN.exec(text);
  if (match === null) {
    throw new WebdfsError('BAD_CONFIG', 'etcd is named as etcd://HOST:PORT,HOST:PORT, or etcds:// with TLS');
  }
  const hosts = match[3]!.split(',').map(hostOf);
  if (hosts.length > MAX_HOSTS)
    throw new WebdfsError('BAD_CONFIG', `${hosts.length} members of etcd, limit ${MAX_HOSTS}`);
  const [user, password] = (match[2] ?? '').split(':');
  try {
    return {
      hosts: [...new Set(hosts)],
      tls: match[1] === 'etcds',
      ...(user === undefined || user === '' ? {} : { user: decodeURIComponent(user) }),
      ...(password === undefined ? {} : { password: decodeURIComponent(password) }),
    };
  } catch {
    throw new WebdfsError('BAD_CONFIG', 'user and password of etcd are not percent-encoded');
  }
}
