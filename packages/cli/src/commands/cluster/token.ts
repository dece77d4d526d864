import { resolve } from 'node:path';
import { codeOf, NodeDisk, WebdfsError } from '@webdfs/base';
import { readSecrets, tokenOf } from '@webdfs/webdfs';
import { type Command, EXIT, UsageError } from '../../command.ts';
import { DEFAULT_DATA } from '../../remote.ts';
import { printJson, printLine } from '../../terminal.ts';

export const clusterToken: Command = {
  name: 'cluster token',
  usage: 'cluster token --data FOLDER',
  summary: 'Prints the token by which machines join the cluster of a node, or of "webdfs up", on this one.',
  details: 'Whoever has the token can be a node and owns all data: hand it over like a password.',
  options: {
    data: {
      type: 'string',
      value: 'FOLDER',
      about: 'data folder of a node, or of "webdfs up" (default: ./webdfs-data)',
    },
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError(`cluster token takes no ${args.positionals[0]}`);
    const folder = resolve(args.text('data') ?? DEFAULT_DATA);
    try {
      const token = tokenOf(await readSecrets(new NodeDisk(), folder));
      if (terminal.json) printJson(terminal, { token });
      else printLine(terminal, token);
      return EXIT.OK;
    } catch (error) {
      if (codeOf(error) !== 'NOT_FOUND') throw error;
      throw new WebdfsError('NOT_FOUND', `${folder} holds no keys of a cluster`, { cause: error });
    }
  },
};
