import type { SeededRandom } from '@webdfs/base';
import { type CodeName, CODES, type Kernel, type KernelName, parityMatrix, ReedSolomon } from '@webdfs/erasure';
import { numberColumn, type ReportSection, textColumn } from '../report/report.ts';
import { verdictOf } from '../report/verdict.ts';
import { type Contestant, measureRates, type Rate, type Sampling } from './sampling.ts';
import { makeStripe, type Stripe } from './stripe.ts';

/*
 * XOR against Reed-Solomon, as the LH*RS prototype of 2004 compared them: gains in CPU time, four data buckets.
 * Source: Moussa, "LH*RS", thesis presentation, Paris Dauphine, 4 October 2004; slides are named with each figure.
 */
interface Published {
  readonly what: string;
  readonly slide: number;
  /** Saved time, per cent. */
  readonly gain: number;
  /** Which of two contestants is the faster, and which the slower one. */
  readonly fast: string;
  readonly slow: string;
  readonly because: string;
}

const TABLES =
  'a product was a table look-up per symbol then; sixteen are looked up at once now, and XOR runs at the speed of memory';
const WIDE = 'two-byte symbols halved the look-ups then; by shuffles they need twice as many per byte';
const ONES = 'then only a few look-ups were saved in a task that the network ruled; here products are all there is';

const PUBLISHED: readonly Published[] = [
  {
    what: 'parity created, XOR for RS, GF(2^16)',
    slide: 57,
    gain: 5,
    fast: 'create xor 16',
    slow: 'create rs 16',
    because: TABLES,
  },
  {
    what: 'parity created, XOR for RS, GF(2^8)',
    slide: 58,
    gain: 22,
    fast: 'create xor 8',
    slow: 'create rs 8',
    because: TABLES,
  },
  {
    what: 'one bucket recovered, XOR for RS, GF(2^16)',
    slide: 43,
    gain: 30,
    fast: 'recover xor 16',
    slow: 'recover rs 16',
    because: TABLES,
  },
  {
    what: 'one bucket recovered, XOR for RS, GF(2^8)',
    slide: 47,
    gain: 60,
    fast: 'recover xor 8',
    slow: 'recover rs 8',
    because: TABLES,
  },
  {
    what: 'one bucket recovered by RS, GF(2^16) for GF(2^8)',
    slide: 47,
    gain: 50,
    fast: 'recover rs 16',
    slow: 'recover rs 8',
    because: WIDE,
  },
  {
    what: 'three parities, ones in row and column for none',
    slide: 15,
    gain: 4,
    fast: 'ones',
    slow: 'no ones',
    because: ONES,
  },
];

const SHAPE = { data: 4, parity: 3 } as const;
const FIELDS: readonly [string, CodeName][] = [
  ['8', 'cauchy'],
  ['16', 'cauchy16'],
];

function contestantsOf(kernel: Kernel, stripe: Stripe): Contestant[] {
  const bytes = SHAPE.data * stripe.data[0]!.length;
  const slow = kernel.name === 'plain';
  const named = (name: string, run: () => void): Contestant => ({ name, bytes, slow, run });
  const shards = [...stripe.data, ...stripe.parity];
  const target = stripe.spare.slice(0, 1);
  const contestants = FIELDS.flatMap(([field, name]) => {
    const code = new ReedSolomon({ kernel, ...SHAPE, code: name });
    const [byXor, byRs] = [code.plan([1], [0, 2, 3, 4]), code.plan([1], [0, 2, 3, 5])];
    const sources = (reads: readonly number[]): Uint8Array[] => reads.map((shard) => shards[shard]!);
    return [
      named(`create xor ${field}`, () => code.encode(stripe.data, [stripe.spare[0], undefined, undefined])),
      named(`create rs ${field}`, () => code.encode(stripe.data, [undefined, stripe.spare[0], undefined])),
      named(`recover xor ${field}`, () => byXor.repair(sources(byXor.reads), target)),
      named(`recover rs ${field}`, () => byRs.repair(sources(byRs.reads), target)),
    ];
  });
  const { field } = CODES.cauchy;
  const ones = parityMatrix(CODES.cauchy, SHAPE.data, SHAPE.parity);
  // the same code with every row and column scaled: as strong, but without a one to save a product
  const noOnes = ones.map((row, p) => row.map((entry, d) => field.multiply(entry, field.power(20 + 3 * p + 7 * d))));
  for (const [name, matrix] of [
    ['ones', ones],
    ['no ones', noOnes],
  ] as const) {
    const compiled = kernel.compile(field, matrix);
    const product = {
      columns: [0, 1, 2, 3],
      sources: stripe.data,
      targets: stripe.spare,
      from: 0,
      to: stripe.data[0]!.length,
    };
    contestants.push(named(name, () => compiled.multiply({ ...product, accumulate: false })));
  }
  return contestants;
}

/** Saved CPU time, per cent. */
function gainOf(rates: readonly Rate[], { fast, slow }: Published): number {
  const rate = (name: string): number => rates.find((found) => found.name === name)!.median;
  return 100 * (1 - rate(slow) / rate(fast));
}

/** The comparisons of 2004, measured with the fastest kernel and with tables in TypeScript, which are the nearest to those of then. */
export async function comparison2004(
  kernels: readonly Kernel[],
  shardBytes: number,
  sampling: Sampling,
  random: SeededRandom,
): Promise<ReportSection> {
  const names: KernelName[] = [];
  const measured: Rate[][] = [];
  for (const kernel of [kernels[0]!, kernels.at(-1)!]) {
    const stripe = makeStripe(SHAPE, shardBytes, random, kernel.name === 'plain' ? undefined : kernel.memory);
    names.push(kernel.name);
    measured.push(await measureRates(contestantsOf(kernel, stripe), sampling));
    stripe.free();
  }
  return {
    id: 'xor-and-rs',
    title: 'XOR against Reed-Solomon, as in 2004',
    prose: [
      'Saved CPU time in per cent, four data shards, as the prototype of LH*RS measured it on a Pentium IV at 1.8 GHz. The verdict is ' +
        `on the ${names[0]} kernel; plain is the nearest to the tables of then, though its tables do four rows at once.`,
    ],
    charts: [
      {
        id: 'gains',
        title: 'Saved CPU time',
        kind: 'bar',
        x: { title: '', scale: 'names' },
        y: { title: 'per cent', scale: 'linear' },
        series: [
          { name: '2004', points: PUBLISHED.map(({ what, gain }) => [what, gain] as const) },
          ...names.map((name, i) => ({
            name,
            points: PUBLISHED.map((published) => [published.what, gainOf(measured[i]!, published)] as const),
          })),
        ],
      },
    ],
    tables: [
      {
        id: 'gains',
        title: 'Saved CPU time, per cent',
        columns: [
          textColumn('comparison'),
          numberColumn('slide'),
          numberColumn('2004', 0),
          ...names.map((name) => numberColumn(name, 1)),
          { title: 'verdict', kind: 'verdict' },
        ],
        rows: PUBLISHED.map((published) => {
          const gains = measured.map((rates) => gainOf(rates, published));
          const { what, slide, gain, because } = published;
          return [what, slide, gain, ...gains, verdictOf({ published: gain, measured: gains[0]!, noise: 5, because })];
        }),
      },
    ],
  };
}
