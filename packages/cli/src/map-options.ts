import { resolve } from 'node:path';
import { NodeDisk, systemClock, SystemRandom } from '@webdfs/base';
import type { FolderSeams, MapStore } from '@webdfs/webdfs';
import { type Arguments, UsageError } from './command.ts';
import { ETCD_OPTIONS, etcdSettings, openEtcd } from './etcd-options.ts';
import { stderrLog } from './log-level.ts';
import { DEFAULT_DATA } from './remote.ts';
import type { Terminal } from './terminal.ts';

/** Options of commands on a map store, in etcd or in a folder of "webdfs up". */
export const MAP_OPTIONS = {
  ...ETCD_OPTIONS,
  data: { type: 'string', value: 'FOLDER', about: 'or the data folder of "webdfs up" (default: ./webdfs-data)' },
} as const;

export interface NamedMap {
  readonly store: MapStore;
  /** The cluster's name, for the store that is in etcd. */
  readonly name: string;
  /** What the store puts before its keys. */
  readonly prefix: string;
  /** For people. */
  readonly where: string;
}

/** Opens the store that was named; `folder` opens one in a folder. */
export async function openNamedMap(
  args: Arguments,
  terminal: Terminal,
  folder: (seams: FolderSeams) => Promise<MapStore>,
): Promise<NamedMap> {
  const inEtcd = args.text('join') !== undefined || terminal.environment['WEBDFS_JOIN'] !== undefined;
  if (args.text('data') === undefined && inEtcd) {
    const settings = await etcdSettings(args, terminal);
    const { name } = settings;
    return {
      store: openEtcd(settings, terminal),
      name,
      prefix: `/webdfs/${name}/`,
      where: `cluster ${name} in etcd`,
    };
  }
  if (args.text('join') !== undefined) throw new UsageError('--join and --data name two stores: say which one');
  const path = resolve(args.text('data') ?? DEFAULT_DATA);
  const store = await folder({
    folder: path,
    disk: new NodeDisk(),
    clock: systemClock,
    random: new SystemRandom(),
    log: stderrLog(terminal, {}),
  });
  return { store, name: 'webdfs', prefix: '', where: path };
}
