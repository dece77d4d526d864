import { SystemRandom } from '@webdfs/base';
import { credentialsFrom, initCluster, type InitOptions } from '@webdfs/webdfs';
import { type Arguments, type Command, EXIT, UsageError } from '../../command.ts';
import { ETCD_OPTIONS, etcdSettings, openEtcd } from '../../etcd-options.ts';
import { placementOf } from '../../placement-option.ts';
import { printJson, printLine, type Terminal } from '../../terminal.ts';

const DOMAINS = ['zone', 'rack', 'machine'] as const;
const GROUPS = [4_096, 16_384, 65_536] as const;

function shapeOf(args: Arguments): Omit<InitOptions, 'random' | 'credentials'> {
  const nodes = args.count('nodes', 3, { least: 1, most: 1_024 });
  const copies = args.count('replicas', Math.min(3, nodes), { least: 1, most: 8 });
  if (copies > nodes) throw new UsageError(`--replicas ${copies} needs at least as many nodes, there are ${nodes}`);
  const groups = args.text('groups');
  if (groups !== undefined && !GROUPS.some((each) => String(each) === groups)) {
    throw new UsageError(`--groups is one of ${GROUPS.join(', ')}, got ${groups}`);
  }
  const domain = DOMAINS.find((name) => name === args.text('domain'));
  if (domain === undefined && args.text('domain') !== undefined) {
    throw new UsageError(`--domain is zone, rack or machine, got ${args.text('domain')}`);
  }
  return {
    nodes,
    copies,
    algorithm: placementOf(args),
    ...(groups === undefined ? {} : { groupBits: Math.log2(Number(groups)) }),
    ...(domain === undefined ? {} : { domain }),
  };
}

function announce(token: string, url: string, name: string, nodes: number, terminal: Terminal): void {
  const lines = [
    `Cluster ${name} is made as soon as ${nodes} nodes have joined. Its token, to be kept like a password:`,
    '',
    token,
    '',
    'On each machine, with a folder and an address of its own:',
    '',
    `  export WEBDFS_TOKEN=${token.slice(0, 12)}…`,
    `  webdfs node --join ${url} --cluster ${name} --listen HOST:9000 --data /srv/webdfs --rack RACK`,
  ];
  for (const line of lines) printLine(terminal, line);
}

export const clusterInit: Command = {
  name: 'cluster init',
  usage: 'cluster init --join etcd://HOST:PORT --cluster NAME --nodes N',
  summary: 'Announces a cluster on several machines, and prints the token by which its nodes join.',
  details: 'Keys come from WEBDFS_ACCESS_KEY_ID and WEBDFS_SECRET_ACCESS_KEY, or are made; they are part of the token.',
  options: {
    ...ETCD_OPTIONS,
    nodes: { type: 'string', value: 'N', about: 'it is made when so many have joined (default: 3)' },
    replicas: { type: 'string', value: 'N', about: 'copies of everything (default: 3, or as many as nodes)' },
    placement: { type: 'string', value: 'NAME', about: 'wrd or rush-r (default: wrd)' },
    groups: {
      type: 'string',
      value: 'N',
      about: '4096, 16384 or 65536 (default: 4096 for up to 15 nodes, then 16384)',
    },
    domain: {
      type: 'string',
      value: 'LABEL',
      about: 'no two copies in one zone, rack or machine (default: the widest with values enough)',
    },
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError(`cluster init takes no ${args.positionals[0]}`);
    const settings = await etcdSettings(args, terminal);
    const shape = shapeOf(args);
    await using store = openEtcd(settings, terminal);
    const { token, credentials } = await initCluster(store, {
      ...shape,
      random: new SystemRandom(),
      credentials: credentialsFrom(terminal.environment),
    });
    const { name, address } = settings;
    if (terminal.json) printJson(terminal, { cluster: name, token, ...credentials });
    else announce(token, `${address.tls ? 'etcds' : 'etcd'}://${address.hosts.join(',')}`, name, shape.nodes, terminal);
    return EXIT.OK;
  },
};
