import { readFile } from 'node:fs/promises';
import { WebdfsError } from '@webdfs/base';
import { importMap, openFolderMap } from '@webdfs/webdfs';
import { type Command, EXIT, UsageError } from '../../command.ts';
import { MAP_OPTIONS, openNamedMap } from '../../map-options.ts';
import { printJson, printLine } from '../../terminal.ts';

export const clusterImport: Command = {
  name: 'cluster import',
  usage: 'cluster import FILE',
  summary: 'Puts a map that was exported into a store that holds no such cluster: the nodes go on with their folders.',
  details: [
    'Then start each node with its old folder: for those of "webdfs up", "webdfs node --data FOLDER/node-1 …" and the',
    'token that "webdfs cluster token --data FOLDER" prints.',
  ].join('\n'),
  options: MAP_OPTIONS,
  async run(args, terminal) {
    const [file, ...more] = args.positionals;
    if (file === undefined || more.length > 0) throw new UsageError('usage: webdfs cluster import FILE');
    let text: string;
    try {
      text = await readFile(file, 'utf8');
    } catch (error) {
      throw new WebdfsError('BAD_CONFIG', `${file} cannot be read`, { cause: error });
    }
    const { store, name, where } = await openNamedMap(args, terminal, (seams) => openFolderMap(seams, true));
    await using _ = store;
    const { era, nodes } = await importMap(store, text, name);
    if (terminal.json) printJson(terminal, { cluster: name, era, nodes });
    else printLine(terminal, `${where} holds the cluster now: ${nodes} nodes, era ${era}`);
    return EXIT.OK;
  },
};
