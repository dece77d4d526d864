import { type Command, UsageError } from '../../command.ts';
import { rescale, RESCALE_OPTIONS } from '../../rescale.ts';

const MAX_COPIES = 32;

export const clusterSetPolicy: Command = {
  name: 'cluster set-policy',
  usage: 'cluster set-policy --copies N',
  summary: 'Has everything kept in another number of copies.',
  details: [
    'With more copies each group gets its new ones first; with fewer each gives one up. What must have a copy before a write',
    'is acknowledged (--min-copies: 2 of 3, 1 of 2 if left out) is lowered at once, and raised when every group has its copies.',
    'Until then no group has fewer copies than the smaller of both numbers by any step that is planned.',
  ].join('\n'),
  options: {
    copies: { type: 'string', value: 'N', about: 'so many; as many as now if left out' },
    'min-copies': { type: 'string', value: 'N', about: 'so many must have what is acknowledged' },
    ...RESCALE_OPTIONS,
  },
  run: async (args, terminal) => {
    if (args.positionals.length > 0) throw new UsageError(`usage: webdfs ${clusterSetPolicy.usage}`);
    const copies = args.count('copies', 0, { least: 1, most: MAX_COPIES });
    const minCopies = args.count('min-copies', 0, { least: 1, most: MAX_COPIES });
    if (copies === 0 && minCopies === 0) throw new UsageError('say how many copies: --copies, --min-copies, or both');
    return await rescale(args, terminal, (report) => {
      const { copies: now } = report.next ?? report;
      const wanted = copies === 0 ? now : copies;
      if (minCopies > wanted) throw new UsageError(`--min-copies ${minCopies}: there would be ${wanted} copies`);
      const words = [
        ...(copies === 0 ? [] : [`--copies ${copies}`]),
        ...(minCopies === 0 ? [] : [`--min-copies ${minCopies}`]),
      ];
      return {
        words: wanted === now ? [] : [`copies=${wanted}`],
        ...(minCopies === 0 ? {} : { minCopies }),
        command: `cluster set-policy ${words.join(' ')}`,
        done: `Everything is kept in ${wanted} copies.`,
      };
    });
  },
};
