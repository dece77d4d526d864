import { codeOf, WebdfsError } from '@webdfs/base';
import { EtcdClient, type EtcdClientOptions } from './client.ts';

/** `3.4.23` as numbers; undefined if it is no version. */
function partsOf(version: string): readonly [number, number, number] | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(version);
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3])];
}

/**
 * Whether a server of this version may end a lease that is renewed: an old leader whose disk stalls does. etcd issue 15247,
 * mended in 3.4.31 and 3.5.13.
 *
 * @throws UNSUPPORTED for a version older than 3.4, which has no transactions at the address we ask
 */
export function mayEndLeasesEarly(version: string): boolean {
  const parts = partsOf(version);
  if (parts === undefined) return true;
  const [major, minor, patch] = parts;
  if (major < 3 || (major === 3 && minor < 4)) {
    throw new WebdfsError('UNSUPPORTED', `etcd ${version} is too old: 3.4 is the first that is spoken with`);
  }
  if (major > 3 || minor > 5) return false;
  return minor === 4 ? patch < 31 : patch < 13;
}

/** The version of the member that is asked; undefined if none answers. */
export async function etcdVersion(options: EtcdClientOptions): Promise<string | undefined> {
  using client = new EtcdClient(options);
  try {
    const { version } = await client.call('maintenance/status', {}, { repeatable: true });
    return typeof version === 'string' ? version : undefined;
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}
