import { verdictOf } from '../report/verdict.ts';
import { PUBLISHED_RUSH_P, PUBLISHED_RUSH_R } from './original/published.ts';
import { type Finding, sumOf } from './published-comparison.ts';
import type { MoveResult, SetupResult, SetupResults } from './setup-results.ts';

/** A published count of a change, and what chance makes of it: the tolerances of the claims P2 to P9. */
interface Count {
  readonly change: string;
  readonly figure: string;
  readonly published: readonly number[];
  readonly noise: number;
}

const RUSH_R: readonly Count[] = [
  { change: 'add-8', figure: 'RUSH_R: add 5 disks of weight 8', published: PUBLISHED_RUSH_R.add, noise: 250 },
  { change: 'drain', figure: 'RUSH_R: first sub-cluster to weight 0', published: PUBLISHED_RUSH_R.drain, noise: 230 },
  { change: 'reweight', figure: 'RUSH_R: second sub-cluster 2 to 4', published: PUBLISHED_RUSH_R.reweight, noise: 220 },
  { change: 'remove-1', figure: 'RUSH_R: disk 1 removed', published: PUBLISHED_RUSH_R['remove-1'], noise: 170 },
];

const RUSH_P: readonly Count[] = [
  { change: 'add-8', figure: 'RUSH_P: add 5 disks of weight 8', published: PUBLISHED_RUSH_P.add, noise: 250 },
  { change: 'drop', figure: 'RUSH_P: first sub-cluster dropped', published: PUBLISHED_RUSH_P.drop, noise: 350 },
  { change: 'remove-15', figure: 'RUSH_P: disk 15 removed', published: PUBLISHED_RUSH_P['remove-15'], noise: 300 },
];

/** Who is heir to what was published, how it is counted, and why it may come out otherwise. */
const HEIRS: Readonly<
  Record<string, { counts: readonly Count[]; measure: (move: MoveResult) => number; because: string }>
> = {
  'rush-r': {
    counts: RUSH_R,
    measure: ({ moved }) => moved.mean,
    because: 'nodes inside a sub-cluster are chosen by rendezvous, where a shuffle of fewer nodes goes another way',
  },
  'rush-r-shuffle': { counts: RUSH_R, measure: ({ moved }) => moved.mean, because: 'of something we do not know' },
  'rush-p': {
    counts: RUSH_P,
    measure: ({ ranks }) => ranks.mean,
    because: 'sub-clusters and nodes are told by their ids, not by their places, and one prime is above them all',
  },
};

function findingsOf({ name, moves }: SetupResult): Finding[] {
  const heir = Object.hasOwn(HEIRS, name) ? HEIRS[name] : undefined;
  if (heir === undefined) return [];
  return heir.counts.flatMap(({ change, figure, published: byDisk, noise }): Finding[] => {
    const move = moves.get(change);
    if (move === undefined || typeof move === 'string') return [];
    const figures = { published: sumOf(byDisk), measured: heir.measure(move), noise };
    return [{ figure, who: name, ...figures, verdict: verdictOf({ ...figures, because: heir.because }) }];
  });
}

/** Today's RUSH in the experiments of 2009: by other hashes of other names, so that chance parts them at least. */
export function compareToday({ results }: SetupResults): Finding[] {
  return results.flatMap(findingsOf);
}
