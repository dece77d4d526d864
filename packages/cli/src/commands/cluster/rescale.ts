import { type Command, EXIT, UsageError } from '../../command.ts';
import { connect, REMOTE_OPTIONS } from '../../remote.ts';
import { lookAtTopology, tellTopology, watchRescale } from '../../rescale.ts';
import { printJson, printLine } from '../../terminal.ts';

const ACTIONS = ['watch', 'pause', 'resume', 'abort'] as const;

const SAID = {
  watch: 'Every group is where it should be.',
  pause: 'Paused: groups that have all their copies stay where they are; lost copies are still made anew.',
  resume: 'Groups move again.',
  abort: 'Given up: groups go back to where they were; "webdfs cluster rescale watch" follows it.',
} as const;

export const clusterRescale: Command = {
  name: 'cluster rescale',
  usage: `cluster rescale ${ACTIONS.join('|')}`,
  summary: 'Follows the change under way, pauses it, goes on with it, or takes it back.',
  options: REMOTE_OPTIONS,
  async run(args, terminal) {
    const action = ACTIONS.find((each) => each === args.positionals[0]);
    if (action === undefined || args.positionals.length > 1) {
      throw new UsageError(`usage: webdfs ${clusterRescale.usage}`);
    }
    using client = await connect(args, terminal);
    const { revision } = await lookAtTopology(client);
    const report =
      action === 'watch'
        ? await watchRescale(client, terminal)
        : await tellTopology(client, { action, revision: String(revision) });
    if (terminal.json) printJson(terminal, report);
    else printLine(terminal, SAID[action]);
    return EXIT.OK;
  },
};
