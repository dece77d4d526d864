import { lookAtHistory } from '@webdfs/webdfs/remote';
import { type Command, EXIT, UsageError } from '../command.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { historyText } from '../rescale-text.ts';
import { printJson, printLine } from '../terminal.ts';

/** What was done to the shape of the cluster; `webdfs cluster rescale history` is the same. */
export const rescaleHistory: Command = {
  name: 'rescale history',
  usage: 'rescale history',
  summary: 'Lists the changes of the cluster: what they moved, how long they took, and how long they had to take.',
  details: [
    'bound: what nobody could beat, by the rates that nodes were seen to move at, or their limit. move: bytes moved by the least',
    'that any scheme must move; place: plan by bound; exec: time by plan; total: time by bound. The last 100 are kept.',
  ].join('\n'),
  options: REMOTE_OPTIONS,
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError(`usage: webdfs ${rescaleHistory.usage}`);
    using client = await connect(args, terminal);
    const history = await lookAtHistory(client);
    if (terminal.json) for (const each of history.rescales) printJson(terminal, each);
    else printLine(terminal, historyText(history));
    return EXIT.OK;
  },
};
