import { readFile } from 'node:fs/promises';
import { systemClock, SystemRandom, WebdfsError } from '@webdfs/base';
import { type EtcdAddress, type EtcdTls, type MapStore, openEtcdMapStore, parseEtcdAddress } from '@webdfs/webdfs';
import { type Arguments, UsageError } from './command.ts';
import { stderrLog } from './log-level.ts';
import type { Terminal } from './terminal.ts';

/** Options of every command that speaks to the map store of a cluster on several machines. */
export const ETCD_OPTIONS = {
  join: {
    type: 'string',
    value: 'URL',
    about: 'etcd://HOST:PORT,HOST:PORT, its members; etcds:// with TLS (WEBDFS_JOIN)',
  },
  cluster: { type: 'string', value: 'NAME', about: "the cluster's name in etcd (WEBDFS_CLUSTER)" },
  'etcd-ca': { type: 'string', value: 'FILE', about: "PEM of who signed etcd's certificates, for etcds://" },
  'etcd-cert': { type: 'string', value: 'FILE', about: 'PEM of our certificate, where etcd asks for one' },
  'etcd-key': { type: 'string', value: 'FILE', about: 'PEM of its key' },
} as const;

export interface EtcdSettings {
  readonly address: EtcdAddress;
  readonly tls: EtcdTls;
  readonly name: string;
}

async function pem(args: Arguments, name: string): Promise<string | undefined> {
  const path = args.text(name);
  if (path === undefined) return undefined;
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new WebdfsError('BAD_CONFIG', `--${name} ${path} cannot be read`, { cause: error });
  }
}

/**
 * Which etcd, and which cluster in it. User and password may stand in the URL, where `ps` shows them, or in
 * WEBDFS_ETCD_USER and WEBDFS_ETCD_PASSWORD.
 *
 * @throws UsageError, WebdfsError BAD_CONFIG
 */
export async function etcdSettings(args: Arguments, terminal: Terminal): Promise<EtcdSettings> {
  const { environment } = terminal;
  const url = args.text('join') ?? environment['WEBDFS_JOIN'];
  const name = args.text('cluster') ?? environment['WEBDFS_CLUSTER'];
  if (url === undefined) throw new UsageError('say which etcd with --join etcd://HOST:PORT');
  if (name === undefined) throw new UsageError('say which cluster with --cluster NAME');
  const address = parseEtcdAddress(url);
  const user = address.user ?? environment['WEBDFS_ETCD_USER'];
  const password = address.password ?? environment['WEBDFS_ETCD_PASSWORD'];
  const [ca, cert, key] = await Promise.all([pem(args, 'etcd-ca'), pem(args, 'etcd-cert'), pem(args, 'etcd-key')]);
  return {
    name,
    address: { ...address, ...(user === undefined ? {} : { user }), ...(password === undefined ? {} : { password }) },
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  };
}

export function openEtcd(settings: EtcdSettings, terminal: Terminal): MapStore {
  return openEtcdMapStore({
    ...settings,
    clock: systemClock,
    random: new SystemRandom(),
    log: stderrLog(terminal, {}),
  });
}
