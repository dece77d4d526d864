import { asNodeId } from '@webdfs/base';
import type { Cell } from '../report/report.ts';
import { type Verdict, verdictOf } from '../report/verdict.ts';
import { contestantsOf } from './contestant.ts';
import { originalRushP, originalRushR } from './original/original-locators.ts';
import { ORIGINAL_NAME_COUNT } from './original/original-names.ts';
import {
  PUBLISHED_PARTNERS_RUSH_P,
  PUBLISHED_PARTNERS_RUSH_R,
  PUBLISHED_RUSH_P,
  PUBLISHED_RUSH_R,
  PUBLISHED_SERVERS,
  PUBLISHED_TEXT,
} from './original/published.ts';
import { everyKey, randomKeys, withKeys } from './original/random-names.ts';
import { type Subclusters, subclustersOf } from './layout.ts';
import { balanceOf, type Counts, loadsOf, optimumOf, partnersOf, type Placed } from './placed.ts';
import { foundingSetup } from './setups.ts';
import { type Spread, spreadOf } from './spread.ts';
import { Trial } from './trials.ts';

/** A published figure beside what comes out here. */
export interface Finding {
  readonly figure: string;
  readonly who: string;
  readonly published: number;
  readonly measured: number;
  /** Null where nothing is left to chance. */
  readonly noise: number | null;
  readonly verdict: Verdict;
}

/** A figure per disk, published and measured. */
export interface DiskFinding {
  readonly id: string;
  readonly title: string;
  readonly published: readonly number[];
  readonly measured: readonly number[];
  readonly verdict: Verdict;
}

const DISKS = Array.from({ length: 15 }, (_, i) => i + 1);
const FAILED = [1, 7, 15] as const;
/** Standard deviations that chance is granted. */
const SIGMAS = 4;

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function byDisk(counts: Counts): number[] {
  return DISKS.map((disk) => counts.get(disk) ?? 0);
}

function diskFinding(
  figure: { id: string; title: string },
  published: readonly number[],
  measured: readonly number[],
  noise: readonly number[] = [],
): DiskFinding {
  const verdicts = published.map((value, i) =>
    verdictOf({ published: value, measured: measured[i]!, noise: noise[i] ?? 0 }),
  );
  const differing = verdicts.filter((verdict) => verdict.startsWith('differs')).length;
  const verdict: Verdict =
    differing > 0
      ? `differs, because ${differing} of ${published.length} disks lie beyond chance`
      : verdicts.every((one) => one === 'reproduced')
        ? 'reproduced'
        : 'within noise';
  return { ...figure, published, measured, verdict };
}

/** RUSH_R of 2009, whose names were kept: everything must come out to the digit. */
export function compareRushR(): DiskFinding[] {
  const setup = foundingSetup(ORIGINAL_NAME_COUNT);
  const trial = new Trial(contestantsOf(['original-rush-r'])[0]!, setup, 0);
  const base = trial.place(setup.subclusters);
  const movedFrom = (id: string): number[] =>
    byDisk(trial.compare(setup.changes.find((change) => change.id === id)!).from);
  return [
    diskFinding({ id: 'distribution', title: 'copies held' }, PUBLISHED_RUSH_R.distribution, byDisk(loadsOf(base))),
    diskFinding({ id: 'add', title: 'moved: 5 disks of weight 8 added' }, PUBLISHED_RUSH_R.add, movedFrom('add-8')),
    diskFinding(
      { id: 'drain', title: 'moved: first sub-cluster to weight 0' },
      PUBLISHED_RUSH_R.drain,
      movedFrom('drain'),
    ),
    diskFinding(
      { id: 'reweight', title: 'moved: second sub-cluster from 2 to 4' },
      PUBLISHED_RUSH_R.reweight,
      movedFrom('reweight'),
    ),
    diskFinding(
      { id: 'remove-1', title: 'moved: disk 1 removed' },
      PUBLISHED_RUSH_R['remove-1'],
      movedFrom('remove-1'),
    ),
    ...FAILED.map((disk) =>
      diskFinding(
        { id: `failed-${disk}`, title: `copies shared with failed disk ${disk}` },
        PUBLISHED_PARTNERS_RUSH_R[disk],
        byDisk(partnersOf(base, asNodeId(disk))),
      ),
    ),
  ];
}

/** Means and noise per disk over sets of fresh names. */
function overSets(samples: readonly (readonly number[])[]): { means: number[]; noise: number[]; total: Spread } {
  const spreads = DISKS.map((_, i) => spreadOf(samples.map((sample) => sample[i]!)));
  return {
    means: spreads.map(({ mean }) => mean),
    noise: spreads.map(({ deviation }) => SIGMAS * deviation),
    total: spreadOf(samples.map(sumOf)),
  };
}

/** By rank, from each disk: how RUSH_P was counted. */
function rankMovesFrom(before: Placed, after: Placed): number[] {
  const from = new Map<number, number>();
  for (const [i, node] of before.rows.entries()) {
    if (node !== after.rows[i]) from.set(node, (from.get(node) ?? 0) + 1);
  }
  return byDisk(from);
}

/** RUSH_P of 2009 drew fresh names for every run: each published count must lie among those of many sets of names. */
export function compareRushP(options: { sets: number; seed: number }): { disks: DiskFinding[]; totals: Finding[] } {
  const setup = foundingSetup(ORIGINAL_NAME_COUNT);
  const keySets = Array.from({ length: options.sets }, (_, i) => randomKeys(ORIGINAL_NAME_COUNT, options.seed + i));
  const everyUnder = (subclusters: Subclusters): Placed => everyKey(originalRushP, subclusters, setup.copies);
  const base = everyUnder(setup.subclusters);
  const disks: DiskFinding[] = [];
  const totals: Finding[] = [];

  const still = (id: string, title: string, published: readonly number[], count: (placed: Placed) => Counts): void => {
    const { means, noise } = overSets(keySets.map((keys) => byDisk(count(withKeys(base, keys)))));
    disks.push(diskFinding({ id, title }, published, means, noise));
  };
  const moved = (id: keyof typeof PUBLISHED_RUSH_P, changeId: string, title: string): void => {
    const after = everyUnder(setup.changes.find((change) => change.id === changeId)!.after);
    const samples = keySets.map((keys) => rankMovesFrom(withKeys(base, keys), withKeys(after, keys)));
    const { means, noise, total } = overSets(samples);
    const published = PUBLISHED_RUSH_P[id];
    disks.push(diskFinding({ id, title }, published, means, noise));
    const figure = { published: sumOf(published), measured: total.mean, noise: SIGMAS * total.deviation };
    totals.push({ figure: `${title}, graph`, who: 'original-rush-p', ...figure, verdict: verdictOf(figure) });
  };

  still('distribution', 'copies held', PUBLISHED_RUSH_P.distribution, loadsOf);
  moved('add', 'add-8', 'ranks: 5 disks of weight 8 added');
  moved('drop', 'drop', 'ranks: first sub-cluster dropped');
  moved('remove-15', 'remove-15', 'ranks: disk 15 removed');
  moved('reweight-last', 'reweight-last', 'ranks: last sub-cluster re-weighted (4 to 5 taken)');
  for (const disk of FAILED) {
    const title = `copies shared with failed disk ${disk}`;
    still(`failed-${disk}`, title, PUBLISHED_PARTNERS_RUSH_P[disk], (placed) => partnersOf(placed, asNodeId(disk)));
  }
  return { disks, totals };
}

/** What the blog's text says beside its graphs. */
export function compareText(rushP: readonly Finding[]): Finding[] {
  const setup = foundingSetup(ORIGINAL_NAME_COUNT);
  const trial = new Trial(contestantsOf(['original-rush-r'])[0]!, setup, 0);
  const optimum = (id: string): number => {
    const change = setup.changes.find((candidate) => candidate.id === id)!;
    return optimumOf(trial.place(change.before), trial.after(change));
  };
  const drop = rushP.find((finding) => finding.figure.includes('dropped'))!;
  const text = (figure: string, published: number, measured: number, noise: number, because: string): Finding => ({
    figure,
    who: 'by weights',
    published,
    measured,
    noise,
    verdict: verdictOf({ published, measured, noise, because }),
  });
  return [
    {
      ...text(
        'ranks: first sub-cluster dropped, text',
        PUBLISHED_TEXT.rushPDrop,
        drop.measured,
        drop.noise ?? 0,
        'of two digits: its own graph adds up to 27 493',
      ),
      who: 'original-rush-p',
    },
    text(
      'optimum: first sub-cluster to weight 0',
      PUBLISHED_TEXT.drainOptimum,
      optimum('drain'),
      1,
      'it counts what those disks held',
    ),
    text(
      'optimum: second sub-cluster from 2 to 4',
      PUBLISHED_TEXT.reweightOptimum,
      optimum('reweight'),
      1,
      'of rounding',
    ),
    text(
      'optimum: disk 1 removed',
      PUBLISHED_TEXT.removeOptimum,
      optimum('remove-1'),
      1,
      'it counts what that disk held',
    ),
  ];
}

/** A row of the test with 15 servers. */
export type ServerRow = readonly Cell[];

/** Five sub-clusters of three servers, two copies: how even a key of 15 bits can be, and one of 64. */
export function compareServers(options: { names: readonly string[]; seed: number }): ServerRow[] {
  const subclusters = subclustersOf([1, 1, 1, 1, 1], 3);
  const copies = 2;
  const { objects } = PUBLISHED_SERVERS;
  const row = (who: string, placed: Placed, because: string): ServerRow => {
    const { largest, smallest, deviation, chiSquare } = balanceOf(placed);
    const mean = (objects * copies) / 15;
    const scale = objects / placed.groupCount;
    const figures = { published: PUBLISHED_SERVERS.chiSquare, measured: chiSquare * scale, noise: 45 };
    return [who, largest, smallest, deviation * mean, chiSquare * scale, verdictOf({ ...figures, because })];
  };
  const every = everyKey(originalRushR, subclusters, copies);
  const even = 'a key has 64 bits here: what is left is chance, and 14 is what chance gives';
  const today = contestantsOf(options.names).flatMap((contestant) => {
    const task = { subclusters, copies, groupCount: objects, seed: options.seed };
    if (!contestant.seeded || contestant.refusal(task) !== undefined) return [];
    return [row(contestant.name, contestant.place(task), even)];
  });
  return [
    [
      'published',
      PUBLISHED_SERVERS.fullest,
      PUBLISHED_SERVERS.emptiest,
      PUBLISHED_SERVERS.deviation,
      PUBLISHED_SERVERS.chiSquare,
      null,
    ],
    row('original-rush-r, every key once', every, 'chance is left out'),
    row('original-rush-r, fresh names', withKeys(every, randomKeys(objects, options.seed)), 'of other names'),
    ...today,
  ];
}
