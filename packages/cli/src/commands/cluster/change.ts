import type { TopologyReport } from '@webdfs/webdfs';
import { type Command, UsageError } from '../../command.ts';
import { rescale, RESCALE_OPTIONS } from '../../rescale.ts';

/** Commands that give a running cluster another shape. Each shows its plan first, and asks. */

type WaitingFolder = TopologyReport['waiting'][number];

function labelWords({ labels }: WaitingFolder): string[] {
  return ['zone', 'rack', 'machine'].flatMap((label) => {
    const value = labels[label];
    return value === undefined ? [] : [`,${label}=${value}`];
  });
}

function lastSubcluster({ settled, target }: TopologyReport): number {
  return (target ?? settled).subclusters.at(-1)?.id ?? 1;
}

/** Those who ask for a place: all, or those that are named by the beginning of their ids. */
function chosen(report: TopologyReport, named: readonly string[]): readonly WaitingFolder[] {
  const { waiting } = report;
  if (waiting.length === 0) {
    throw new UsageError('no node asks for a place: start it on its machine with "webdfs node --join"');
  }
  if (named.length === 0) return waiting;
  return named.map((name) => {
    const found = waiting.filter(({ folder }) => folder.startsWith(name));
    if (found.length === 1) return found[0]!;
    const there = waiting.map(({ folder }) => folder.slice(0, 8)).join(', ');
    throw new UsageError(`${name} names ${found.length} of the folders that ask for a place: ${there}`);
  });
}

export const clusterAdd: Command = {
  name: 'cluster add',
  usage: 'cluster add [FOLDER-ID…]',
  summary: 'Adds nodes, and gives them their share of the groups.',
  details: [
    'On one machine ("webdfs up") so many as --nodes says. On several, the nodes that were started there with "webdfs node',
    '--join" and ask for a place: all of them, or those whose ids begin as said, with the weights and labels they came with.',
  ].join('\n'),
  options: {
    nodes: { type: 'string', value: 'N', about: 'so many, of a cluster on one machine' },
    subcluster: { type: 'string', value: 'ID', about: 'add them to this sub-cluster (default: the newest)' },
    new: { type: 'boolean', about: 'make them a sub-cluster of their own' },
    ...RESCALE_OPTIONS,
  },
  run: async (args, terminal) =>
    await rescale(args, terminal, (report) => {
      const newest = Math.max(...(report.target ?? report.settled).subclusters.map(({ id }) => id));
      const to = args.flag('new') ? newest + 1 : (args.text('subcluster') ?? lastSubcluster(report));
      if (report.isSupervised) {
        const count = args.count('nodes', 1, { least: 1, most: 1_000 });
        const place = args.flag('new') ? `id=${to}` : `to=${to}`;
        return {
          words: [`add=${count},${place}`],
          command: `cluster add --nodes ${count}`,
          done: `${count} more nodes have their share.`,
        };
      }
      const folders = chosen(report, args.positionals);
      const words = folders.map((folder, i) => {
        const place = args.flag('new') && i === 0 ? `id=${to}` : `to=${to}`;
        return `add=1,${place},weight=${folder.weight}${labelWords(folder).join('')}`;
      });
      return {
        words,
        folders: folders.map(({ folder }) => folder),
        command: `cluster add ${folders.map(({ folder }) => folder.slice(0, 8)).join(' ')}`,
        done: `${folders.length} nodes have their share.`,
      };
    }),
};

/** A change that its words say all of. */
interface PlainChange {
  readonly name: string;
  /** What its words are called in the help. */
  readonly takes: readonly string[];
  readonly summary: string;
  readonly details?: string;
  /** As `webdfs plan` has it. */
  readonly change: (...words: string[]) => string;
  readonly done: (...words: string[]) => string;
}

const NODES_HELP = 'NODES: 7 or 1-8,11 or rack:R or zone:Z or machine:M or subcluster:ID';

const PLAIN_CHANGES: readonly PlainChange[] = [
  {
    name: 'drain',
    takes: ['NODES'],
    summary: 'Has nodes give up all their groups; they stay in the cluster, with weight 0.',
    details: NODES_HELP,
    change: (nodes) => `drain=${nodes}`,
    done: (nodes) => `Node ${nodes} holds no group any more: safe to remove.`,
  },
  {
    name: 'remove',
    takes: ['NODES'],
    summary: 'Takes nodes out of the cluster; what they still hold goes to others first.',
    details: [
      'Leave their processes running until it is done ("webdfs cluster rescale watch"); of nodes that are lost, the copies',
      'are made from the others.',
      NODES_HELP,
    ].join('\n'),
    change: (nodes) => `remove=${nodes}`,
    done: (nodes) => `Node ${nodes} is no part of the cluster any more: stop it.`,
  },
  {
    name: 'reweight',
    takes: ['NODES', 'WEIGHT'],
    summary: 'Gives nodes another share of the groups.',
    details: NODES_HELP,
    change: (nodes, weight) => `weight=${nodes},to=${weight}`,
    done: (nodes, weight) => `Node ${nodes} has the share of weight ${weight}.`,
  },
  {
    name: 'set-placement',
    takes: ['ALGORITHM'],
    summary: 'Has another algorithm say where groups lie. Most groups move: look at "webdfs plan" first.',
    change: (algorithm) => `algorithm=${algorithm}`,
    done: (algorithm) => `Groups lie where ${algorithm} has them.`,
  },
];

function plainCommand({ name, takes, summary, details, change, done }: PlainChange): Command {
  const usage = `cluster ${name} ${takes.join(' ')}`;
  return {
    name: `cluster ${name}`,
    usage,
    summary,
    ...(details === undefined ? {} : { details }),
    options: RESCALE_OPTIONS,
    run: async (args, terminal) => {
      const words = args.positionals;
      if (words.length !== takes.length) throw new UsageError(`usage: webdfs ${usage}`);
      return await rescale(args, terminal, () => ({
        words: [change(...words)],
        command: `cluster ${name} ${words.join(' ')}`,
        done: done(...words),
      }));
    },
  };
}

/** Those whose words say all. */
export const plainChanges: readonly Command[] = PLAIN_CHANGES.map(plainCommand);

export const clusterReplace: Command = {
  name: 'cluster replace',
  usage: 'cluster replace NODE [FOLDER-ID]',
  summary: 'Has a node that asks for a place take over from another, in one plan.',
  options: RESCALE_OPTIONS,
  run: async (args, terminal) => {
    const [node, ...named] = args.positionals;
    if (node === undefined || named.length > 1) throw new UsageError('usage: webdfs cluster replace NODE [FOLDER-ID]');
    return await rescale(args, terminal, (report) => {
      const folders = chosen(report, named);
      const [folder] = folders;
      if (folder === undefined || folders.length > 1) {
        throw new UsageError(`${folders.length} folders ask for a place: name one of them`);
      }
      const home = (report.target ?? report.settled).subclusters.find(({ nodes }) =>
        nodes.some(({ id }) => String(id) === node),
      );
      if (home === undefined) throw new UsageError(`the cluster has no node ${node}`);
      return {
        words: [`add=1,to=${home.id},weight=${folder.weight}${labelWords(folder).join('')}`, `remove=${node}`],
        folders: [folder.folder],
        command: `cluster replace ${node} ${folder.folder.slice(0, 8)}`,
        done: `Node ${node} is no part of the cluster any more: stop it.`,
      };
    });
  },
};
