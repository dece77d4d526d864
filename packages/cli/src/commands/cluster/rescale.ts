import type { TopologyReport } from '@webdfs/webdfs';
import { byteRateOf, shareOf } from '../../byte-rate.ts';
import { type Arguments, type Command, EXIT, UsageError } from '../../command.ts';
import { connect, REMOTE_OPTIONS } from '../../remote.ts';
import { lookAtTopology, tellTopology, watchRescale } from '../../rescale.ts';
import { formatBytes, printJson, printLine } from '../../terminal.ts';

const ACTIONS = ['watch', 'pause', 'resume', 'abort', 'limit'] as const;
type Action = (typeof ACTIONS)[number];

const SAID: Record<Exclude<Action, 'limit'>, string> = {
  watch: 'Every group is where it should be.',
  pause: 'Paused: groups that have all their copies stay where they are; lost copies are still made anew.',
  resume: 'Groups move again.',
  abort: 'Given up: groups go back to where they were; "webdfs cluster rescale watch" follows it.',
};

/** What is to be limited; nothing: only shown. */
function limitsOf(args: Arguments): Record<string, string> {
  const rate = args.text('rate');
  const share = args.text('share');
  return {
    ...(rate === undefined ? {} : { rate: rate === 'none' ? rate : String(byteRateOf(rate)) }),
    ...(share === undefined ? {} : { share: share === 'none' ? share : String(shareOf(share)) }),
  };
}

function limitText({ moveLimits = {} }: TopologyReport): string {
  const { bytesPerSecond, share } = moveLimits;
  const rate = bytesPerSecond === undefined ? 'any rate' : `at most ${formatBytes(bytesPerSecond)}/s, in and out`;
  const part = share === undefined ? '' : `; ${share} of the fastest it was seen to move while it serves clients`;
  return `Groups move at ${rate}, at each node${part}.`;
}

export const clusterRescale: Command = {
  name: 'cluster rescale',
  usage: `cluster rescale ${ACTIONS.join('|')}`,
  summary: 'Follows the change under way, pauses it, goes on with it, takes it back, or limits its rate.',
  details:
    '"limit" holds for all that moves between nodes, repairs of lost copies as well, until it is changed; without an option it\n' +
    'shows what holds. Groups with too few copies to be written are repaired without regard to it.',
  options: {
    ...REMOTE_OPTIONS,
    rate: {
      type: 'string',
      value: 'BYTES',
      about: 'limit: bytes per second in, and out, of each node: 50MiB, or none',
    },
    share: {
      type: 'string',
      value: 'PART',
      about: 'limit: part of what a node can move, while it serves clients: 0.5, or none',
    },
  },
  async run(args, terminal) {
    const action = ACTIONS.find((each) => each === args.positionals[0]);
    if (action === undefined || args.positionals.length > 1) {
      throw new UsageError(`usage: webdfs ${clusterRescale.usage}`);
    }
    const limits = limitsOf(args);
    if (action !== 'limit' && Object.keys(limits).length > 0) throw new UsageError('--rate and --share are of "limit"');
    using client = await connect(args, terminal);
    const seen = await lookAtTopology(client);
    const report = await (async () => {
      if (action === 'watch') return await watchRescale(client, terminal);
      if (action === 'limit' && Object.keys(limits).length === 0) return seen;
      return await tellTopology(client, { action, revision: String(seen.revision), ...limits });
    })();
    if (terminal.json) printJson(terminal, report);
    else printLine(terminal, action === 'limit' ? limitText(report) : SAID[action]);
    return EXIT.OK;
  },
};
