import { type MapUsage, mapUsage, openReadableMap } from '@webdfs/webdfs';
import { type Command, EXIT, UsageError } from '../../command.ts';
import { MAP_OPTIONS, openNamedMap } from '../../map-options.ts';
import { formatBytes, formatTable, printJson, printLine } from '../../terminal.ts';

function text(usage: MapUsage): string {
  const rows = (['map', 'nodes', 'groups', 'slices', 'others'] as const).map((kind) => {
    const each = { nodes: usage.bytesPerNode, groups: usage.bytesPerGroup }[kind as 'nodes'] as number | undefined;
    const { keys, bytes } = usage[kind];
    return [kind, String(keys), formatBytes(bytes), each === undefined ? '' : formatBytes(each)];
  });
  return [
    formatTable(['', 'keys', 'bytes', 'each'], rows),
    '',
    `${usage.keys} keys, ${formatBytes(usage.bytes)}: ${usage.bytesPerNode} bytes a node, ${usage.bytesPerGroup} bytes a group ` +
      'that is degraded or moves, none an object',
  ].join('\n');
}

export const clusterUsage: Command = {
  name: 'cluster usage',
  usage: 'cluster usage',
  summary: 'Counts what the map store holds: by nodes and by degraded groups, never by objects.',
  options: MAP_OPTIONS,
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError(`cluster usage takes no ${args.positionals[0]}`);
    const { store, prefix } = await openNamedMap(args, terminal, openReadableMap);
    await using _ = store;
    const usage = await mapUsage(store, prefix);
    if (terminal.json) printJson(terminal, usage);
    else printLine(terminal, text(usage));
    return EXIT.OK;
  },
};
