import { systemClock } from '@webdfs/base';
import { benchErasure, ERASURE_SAMPLING, type ErasureBenchOptions } from '@webdfs/bench';
import { type Arguments, type Command, UsageError } from '../../command.ts';
import { outOption, runReport } from './report-run.ts';

const FOLDER = 'erasure-report';
const MAX_SEED = 0xffff_ffff;
const KIB = 1024;
const MOST_KIB = 16_384;
const SHAPES = '4+2,10+4';
const SIZES = { full: '4,16,64,256,1024,4096', quick: '4,64' } as const;

function shapesOf(text: string): ErasureBenchOptions['shapes'] {
  return text.split(',').map((word) => {
    const [, data, parity] = /^(\d{1,2})\+(\d)$/.exec(word.trim()) ?? [];
    if (data === undefined || parity === undefined)
      throw new UsageError(`--shapes takes such as 4+2,10+4; got ${word}`);
    return { data: Number(data), parity: Number(parity) };
  });
}

function sizesOf(text: string): number[] {
  return text.split(',').map((word) => {
    const kib = Number(word);
    if (!Number.isInteger(kib) || kib < 1 || kib > MOST_KIB) {
      throw new UsageError(`--sizes takes KiB from 1 to ${MOST_KIB}, got ${word}`);
    }
    return kib * KIB;
  });
}

/** The words that repeat the run. */
function commandOf(args: Arguments, seed: number): string {
  const given = ['shapes', 'sizes', 'ronomon'].flatMap((name) => {
    const value = args.text(name);
    return value === undefined ? [] : [`--${name} ${value}`];
  });
  return ['webdfs bench erasure', ...given, `--seed ${seed}`, ...(args.flag('quick') ? ['--quick'] : [])].join(' ');
}

export const benchErasureCommand: Command = {
  name: 'bench erasure',
  usage: 'bench erasure',
  summary: 'Measures Reed-Solomon: encode, delta, repair of 1 to k losses, XOR against RS, by CPU time.',
  details: [
    'Needs no cluster. Prints tables and writes report.html (charts), report.json and a CSV file per table. Beside every kernel of',
    'this runtime it measures memcpy, and @ronomon/reed-solomon if it is installed somewhere: npm install --prefix FOLDER',
    '@ronomon/reed-solomon, then --ronomon FOLDER. Ends with 0 if all gates pass, 1 if one fails.',
  ].join('\n'),
  options: {
    shapes: { type: 'string', value: 'M+K,…', about: `data and parity shards; ${SHAPES} if left out` },
    sizes: {
      type: 'string',
      value: 'KIB,…',
      about: `shards in KiB; ${SIZES.full} if left out, ${SIZES.quick} with --quick`,
    },
    ronomon: { type: 'string', value: 'FOLDER', about: 'where @ronomon/reed-solomon is installed, to compare' },
    seed: { type: 'string', value: 'N', about: 'of the data; 1 if left out' },
    out: outOption(FOLDER),
    quick: { type: 'boolean', about: 'a look: fewer sizes and rounds, within half a minute' },
  },
  async run(args, terminal) {
    if (args.positionals.length > 0) throw new UsageError('usage: webdfs bench erasure');
    const quick = args.flag('quick');
    const seed = args.count('seed', 1, { least: 0, most: MAX_SEED });
    const ronomon = args.text('ronomon');
    return await runReport(args, terminal, {
      folder: FOLDER,
      run: async (onProgress) =>
        await benchErasure({
          shapes: shapesOf(args.text('shapes') ?? SHAPES),
          shardSizes: sizesOf(args.text('sizes') ?? (quick ? SIZES.quick : SIZES.full)),
          seed,
          sampling: quick ? ERASURE_SAMPLING.quick : ERASURE_SAMPLING.full,
          ...(ronomon === undefined ? {} : { ronomon }),
          clock: systemClock,
          command: commandOf(args, seed),
          onProgress,
        }),
    });
  },
};
