import { NodeDisk, replaceWhole, utf8 } from '@webdfs/base';
import { exportMap, openFolderMap, unfreeze } from '@webdfs/webdfs';
import { basename, dirname, resolve } from 'node:path';
import { type Command, EXIT, UsageError } from '../../command.ts';
import { MAP_OPTIONS, openNamedMap } from '../../map-options.ts';
import { printJson, printLine } from '../../terminal.ts';

export const clusterExport: Command = {
  name: 'cluster export',
  usage: 'cluster export FILE',
  summary: 'Takes the map of a stopped cluster out of its store, for "webdfs cluster import" into another.',
  details: [
    'The data stays where it is. The store is frozen, so that nobody goes on with it by mistake; asking again writes the',
    'same file. --undo lets it go on, for a map that was not imported anywhere: two stores of one cluster lose data.',
  ].join('\n'),
  options: {
    ...MAP_OPTIONS,
    undo: { type: 'boolean', about: 'let the frozen store go on' },
  },
  async run(args, terminal) {
    const [file, ...more] = args.positionals;
    const undo = args.flag('undo');
    if (more.length > 0 || (file === undefined) !== undo) throw new UsageError('usage: webdfs cluster export FILE');
    const { store, where } = await openNamedMap(args, terminal, (seams) => openFolderMap(seams, false));
    await using _ = store;
    if (file === undefined) {
      await unfreeze(store);
      if (terminal.json) printJson(terminal, { frozen: false });
      else printLine(terminal, `${where} goes on with its next start`);
      return EXIT.OK;
    }
    const path = resolve(file);
    await replaceWhole(new NodeDisk(), dirname(path), basename(path), utf8(await exportMap(store)));
    if (terminal.json) printJson(terminal, { frozen: true, file: path });
    else printLine(terminal, `the map is in ${path}; ${where} is frozen`);
    return EXIT.OK;
  },
};
