import { type Command, EXIT, UsageError } from '../../command.ts';
import { durationOf } from '../../duration.ts';
import { connect, REMOTE_OPTIONS } from '../../remote.ts';
import { lookAtTopology, tellTopology } from '@webdfs/webdfs/remote';
import { formatDuration, printJson, printLine } from '../../terminal.ts';

/** Below this a restart would move data. */
const LEAST_MS = 1_000;

function msOf(word: string): number {
  if (word === 'never') return 0;
  const ms = durationOf(word);
  if (ms < LEAST_MS) throw new UsageError(`${word} is too short: at least 1s`);
  return ms;
}

export const clusterOutAfter: Command = {
  name: 'cluster out-after',
  usage: 'cluster out-after [DURATION|never]',
  summary: 'Says, or sets, after how long a node that is away is written off and its copies are made anew elsewhere.',
  details:
    '"never" for the time of a repair: what is away keeps its share. A node that was written off gets its share back when it returns.',
  options: REMOTE_OPTIONS,
  async run(args, terminal) {
    const [word, ...others] = args.positionals;
    if (others.length > 0) throw new UsageError(`usage: webdfs ${clusterOutAfter.usage}`);
    const ms = word === undefined ? undefined : msOf(word);
    using client = await connect(args, terminal);
    const seen = await lookAtTopology(client);
    const asked = { action: 'out-after', revision: String(seen.revision), ms: String(ms) };
    const { outAfterMs } = ms === undefined ? seen : await tellTopology(client, asked);
    if (terminal.json) printJson(terminal, { outAfterMs });
    else if (outAfterMs === 0) printLine(terminal, 'A node that is away is never written off.');
    else printLine(terminal, `A node that is away is written off after ${formatDuration(outAfterMs / 1_000)}.`);
    return EXIT.OK;
  },
};
