import { lookAtTopology, tellTopology, type TopologyReport } from '@webdfs/webdfs/remote';
import { byteRateOf, shareOf } from '../../amounts.ts';
import { type Arguments, type Command, EXIT, UsageError } from '../../command.ts';
import { connect, REMOTE_OPTIONS } from '../../remote.ts';
import { followRescale } from '../../rescale.ts';
import { statusText } from '../../rescale-text.ts';
import { formatBytes, printJson, printLine } from '../../terminal.ts';
import { rescaleHistory } from '../rescale.ts';

const ACTIONS = ['status', 'watch', 'pause', 'resume', 'abort', 'limit', 'history'] as const;
type Action = (typeof ACTIONS)[number];

const SAID: Record<'pause' | 'resume' | 'abort', string> = {
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

function saidOf(action: Exclude<Action, 'watch' | 'history'>, report: TopologyReport): string {
  if (action === 'limit') return limitText(report);
  return action === 'status' ? statusText(report) : SAID[action];
}

export const clusterRescale: Command = {
  name: 'cluster rescale',
  usage: `cluster rescale ${ACTIONS.join('|')}`,
  summary:
    'Shows or follows the change under way, pauses it, goes on with it, takes it back, limits its rate; tells what was done.',
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
    if (action === 'history') return await rescaleHistory.run({ ...args, positionals: [] }, terminal);
    const seen = await lookAtTopology(client);
    if (action === 'watch') {
      await followRescale(client, terminal, 'Every group is where it should be.');
      return EXIT.OK;
    }
    const isLook = action === 'status' || (action === 'limit' && Object.keys(limits).length === 0);
    const report = isLook ? seen : await tellTopology(client, { action, revision: String(seen.revision), ...limits });
    if (terminal.json) printJson(terminal, report);
    else printLine(terminal, saidOf(action, report));
    return EXIT.OK;
  },
};
