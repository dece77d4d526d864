import { type NodeId, WebdfsError } from '@webdfs/base';
import { formatDocument } from './documents.ts';
import { diskKey, liveKey, nodeKey } from './keys.ts';
import type { LiveInfo } from './map.ts';
import type { Compare, Write } from './map-store.ts';
import { markWrite } from './marks.ts';
import type { NodeMemory } from './node-memory.ts';
import type { MapView } from './view.ts';

/** What a node says of itself when it registers. */
export interface NodeFacts {
  readonly node: NodeId;
  readonly address: string;
  /** Undefined: as the map has them. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Id of the data folder. */
  readonly disk: string;
}

/**
 * How a node may register, judged by its disk:
 * - `same`: it is the disk the map knows, as new as the map knows it.
 * - `founding`: the first data folder of a node the cluster was made with.
 * - `lost`: an empty, an exchanged or an old disk. It is in sync and eligible nowhere, a learner everywhere.
 */
export type DiskVerdict = 'same' | 'founding' | 'lost';

export interface Registration {
  readonly verdict: DiskVerdict;
  /** To be kept on the node's own disk: before the transaction, or, with a lost disk, after it. */
  readonly memory: NodeMemory;
  readonly compare: readonly Compare[];
  readonly write: readonly Write[];
}

/** @throws WRONG_PEER if the memory is of another cluster, OLD_STORE if the map is older than what the node has seen */
export function checkMemory(view: MapView, memory: NodeMemory | undefined, node: NodeId): void {
  if (memory === undefined) return;
  const { cluster, name, era } = view.map;
  if (memory.cluster !== cluster) {
    throw new WebdfsError('WRONG_PEER', `node ${node}'s data belongs to another cluster than ${name} (${cluster})`);
  }
  const life = view.node(node)?.life ?? 0;
  const older = era < memory.era || (era === memory.era && view.revision < memory.revision);
  if (older || memory.life > life + 1) {
    throw new WebdfsError(
      'OLD_STORE',
      `the map store shows era ${era}, revision ${view.revision} and life ${life} of node ${node}, which has seen era ` +
        `${memory.era}, revision ${memory.revision} and life ${memory.life}: it is an older copy of the map`,
    );
  }
}

function verdictOf(view: MapView, facts: NodeFacts, memory: NodeMemory | undefined): DiskVerdict {
  const known = view.disk(facts.node);
  if (known !== undefined && known.founding && known.id === '') return 'founding';
  if (known === undefined || known.id !== facts.disk) return 'lost';
  const life = view.node(facts.node)?.life ?? 0;
  // a founding disk that the cluster was made with has no memory yet, and nobody has raised its life
  return (memory?.life ?? 0) < life ? 'lost' : 'same';
}

/**
 * Everything but the session itself that a node writes when it registers. A lost disk comes with its own mark, in one
 * transaction: else a later sweep would make a configuration newer than the loss, and count the empty disk as in sync.
 *
 * @throws WRONG_PEER, OLD_STORE
 */
export function planRegistration(view: MapView, facts: NodeFacts, memory: NodeMemory | undefined): Registration {
  checkMemory(view, memory, facts.node);
  const { node, address } = facts;
  const known = view.node(node);
  const verdict = verdictOf(view, facts, memory);
  const life = (known?.life ?? 0) + 1;
  const labels = facts.labels ?? known?.labels ?? {};
  const { cluster, era } = view.map;
  const disk = diskWrites(view, facts, verdict, memory === undefined ? 'its disk is new' : 'its disk is old');
  return {
    verdict,
    memory: { cluster, era, revision: view.revision, life },
    compare: [
      { type: 'modified', key: nodeKey(node), is: known?.revision ?? 0 },
      { type: 'modified', key: diskKey(node), is: view.disk(node)?.revision ?? 0 },
      ...disk.compare,
    ],
    write: [{ type: 'put', key: nodeKey(node), value: formatDocument({ address, labels, life }) }, ...disk.write],
  };
}

/** What the verdict on its disk has a node write. */
function diskWrites(
  view: MapView,
  { node, disk }: NodeFacts,
  verdict: DiskVerdict,
  reason: string,
): Pick<Registration, 'compare' | 'write'> {
  if (verdict === 'same') return { compare: [], write: [] };
  const value = formatDocument({ id: disk, founding: verdict === 'founding' });
  const write: Write = { type: 'put', key: diskKey(node), value };
  if (verdict === 'founding') return { compare: [], write: [write] };
  const mark = markWrite(view, node, reason, 0);
  return { compare: [mark.compare], write: [write, mark.write] };
}

/** The session's part: the key may replace `replaced` only (0: none). */
export function sessionWrite(
  node: NodeId,
  info: LiveInfo,
  lease: number,
  replaced: number,
): { readonly compare: Compare; readonly write: Write } {
  return {
    compare: { type: 'modified', key: liveKey(node), is: replaced },
    write: { type: 'put', key: liveKey(node), value: formatDocument(info), lease },
  };
}
