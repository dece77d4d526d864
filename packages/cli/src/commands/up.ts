import { resolve } from 'node:path';
import { WebdfsError } from '@webdfs/base';
import { credentialsFrom, type RunningCluster, startCluster } from '@webdfs/webdfs';
import { clusterDefaults } from '../cluster-defaults.ts';
import { type Command, EXIT, UsageError } from '../command.ts';
import { placementOf } from '../placement-option.ts';
import { DEFAULT_DATA } from '../remote.ts';
import { printJson, printLine, type Terminal } from '../terminal.ts';

function announce(cluster: RunningCluster, terminal: Terminal): void {
  const { endpoint, credentials } = cluster;
  if (terminal.json) {
    printJson(terminal, { ready: true, endpoint, ...credentials, nodes: cluster.nodes() });
    return;
  }
  const { accessKeyId, secretAccessKey } = credentials;
  const remote = `:s3,provider=Other,endpoint='${endpoint}',access_key_id='${accessKeyId}',secret_access_key='${secretAccessKey}':`;
  const lines = [
    `WebDFS is ready: ${endpoint}`,
    '',
    `  access key  ${accessKeyId}`,
    `  secret key  ${secretAccessKey}`,
    `  nodes       ${cluster
      .nodes()
      .map((node) => `${node.id} (pid ${node.pid})`)
      .join(', ')}`,
    `  data        ${cluster.folder}`,
    '',
    'Try it:',
    `  AWS_ACCESS_KEY_ID=${accessKeyId} AWS_SECRET_ACCESS_KEY='${secretAccessKey}' aws --endpoint-url ${endpoint} --region us-east-1 s3 mb s3://first`,
    `  rclone ls "${remote}"`,
    `  curl -T README.md -H "Authorization: Bearer ${cluster.bearer}" ${endpoint}/first/README.md`,
    '',
    'Ctrl-C stops it.',
  ];
  for (const line of lines) printLine(terminal, line);
}

function bucketsOf(terminal: Terminal): string[] {
  return (terminal.environment['WEBDFS_BUCKETS'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

export const up: Command = {
  name: 'up',
  usage: 'up',
  summary: 'Starts a store on this machine: one process a node, one port for all.',
  details: [
    'The data folder keeps the cluster map, the keys and one folder a node; a later start goes on with it.',
    'Keys come from WEBDFS_ACCESS_KEY_ID and WEBDFS_SECRET_ACCESS_KEY, or are made once and kept there.',
    'WEBDFS_BUCKETS=a,b makes buckets at the start; WEBDFS_LOG=error|warn|info|debug says how much is logged.',
  ].join('\n'),
  options: {
    nodes: {
      type: 'string',
      value: 'N',
      about: 'nodes (default: 3, or those that are there); another number grows or shrinks the cluster',
    },
    replicas: {
      type: 'string',
      value: 'N',
      about: 'copies of everything in a new cluster (default: 3, or as many as nodes)',
    },
    placement: { type: 'string', value: 'NAME', about: 'wrd or rush-r, of a new cluster (default: wrd)' },
    data: { type: 'string', value: 'FOLDER', about: 'where everything is kept (default: ./webdfs-data)' },
    port: { type: 'string', value: 'PORT', about: 'the one port for all nodes (default: 9000)' },
    host: {
      type: 'string',
      value: 'ADDRESS',
      about: 'the address to listen on; 0.0.0.0 is every one (default: 127.0.0.1)',
    },
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError(`up takes no ${args.positionals[0]}`);
    const nodes = args.count('nodes', 3, { least: 1, most: 64 });
    const replicas = args.count('replicas', Math.min(3, nodes), { least: 1, most: 8 });
    if (replicas > nodes)
      throw new UsageError(`--replicas ${replicas} needs at least ${replicas} nodes, there are ${nodes}`);
    const port = args.count('port', 9000, { least: 1, most: 65_535 });
    const cluster = await startCluster({
      ...(await clusterDefaults(terminal, port)),
      folder: resolve(args.text('data') ?? DEFAULT_DATA),
      nodes,
      nodesGiven: args.text('nodes') !== undefined,
      replicas,
      replicasGiven: args.text('replicas') !== undefined,
      placement: placementOf(args),
      placementGiven: args.text('placement') !== undefined,
      host: args.text('host') ?? '127.0.0.1',
      credentials: credentialsFrom(terminal.environment),
      buckets: bucketsOf(terminal),
    });
    try {
      announce(cluster, terminal);
      await cluster.ended;
      if (!terminal.signal.aborted)
        throw new WebdfsError('UNAVAILABLE', 'the cluster has stopped by itself: see the log above');
    } finally {
      await cluster[Symbol.asyncDispose]();
    }
    return EXIT.OK;
  },
};
