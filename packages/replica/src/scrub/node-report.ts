import { type GroupKey, groupNumber } from '@webdfs/base';
import type { ReplicaHost } from '../replica-host.ts';
import type { GroupResult, PassState } from './pass.ts';
import { MAX_REASONS, type NodeScrub, type PolicyCount } from './scrub-codec.ts';
import { addTally, emptyTally } from './tally.ts';

/** What became of the last try to count a group. */
export interface Failure {
  /** Tries that came to nothing, one after another. */
  readonly count: number;
  /** By the monotonic clock. */
  readonly againAt: number;
  readonly why: string;
}

export interface Progress {
  readonly state: PassState;
  readonly failures: ReadonlyMap<number, Failure>;
  readonly bytesPerSecond: number;
}

/** A group that has failed so often is told of as stuck; it is tried again all the same. */
const STUCK_AFTER = 3;

/** What was counted of a group that this node serves now, if it still has the members that were counted. */
export function resultOf(
  host: Pick<ReplicaHost, 'serving' | 'map'>,
  state: PassState,
  group: GroupKey,
): GroupResult | undefined {
  const result = state.results.get(groupNumber(group));
  if (result === undefined || host.serving(group) === 0) return undefined;
  return result.members === host.map.view.group(group).inSync.join() ? result : undefined;
}

/** What a node tells of its part of the pass: only what is true by its map of this moment. */
export function nodeReport(host: ReplicaHost, progress: Progress): NodeScrub {
  const { map, store } = host;
  const { state, failures } = progress;
  const bytes = Math.ceil(2 ** map.view.map.groupBits / 8);
  const policies = new Map<number, PolicyCount>(
    map.view.map.policies.map(({ id }) => [id, { policy: id, counted: new Uint8Array(bytes), tally: emptyTally() }]),
  );
  const reasons: NodeScrub['reasons'][number][] = [];
  let served = 0;
  let bytesTotal = 0;
  for (const group of host.served()) {
    served++;
    bytesTotal += store.log(group).bytes;
    const result = resultOf(host, state, group);
    const sum = policies.get(group.policy);
    if (result !== undefined && sum !== undefined) {
      sum.counted[group.group >>> 3]! |= 1 << (group.group & 7);
      addTally(sum.tally, result.tally);
    } else if (reasons.length < MAX_REASONS) {
      const failure = failures.get(groupNumber(group));
      if (failure !== undefined) reasons.push({ policy: group.policy, group: group.group, why: failure.why });
    }
  }
  const facts = store.facts();
  return {
    node: host.self,
    revision: map.view.revision,
    pass: state.pass,
    state: workOf(host, progress),
    policies: [...policies.values()],
    reasons,
    served,
    volumes: {
      read: Math.min(state.volumes.size, facts.volumes),
      of: facts.volumes,
      bytes: facts.volumeBytes,
      done: state.areVolumesRead,
    },
    bytesPerSecond: progress.bytesPerSecond,
    bytesTotal,
    completion: state.completion,
  };
}

function workOf(host: ReplicaHost, { state, failures }: Progress): NodeScrub['state'] {
  if (state.pass === undefined) return 'done';
  let isStuck = false;
  for (const group of host.served()) {
    if (resultOf(host, state, group) !== undefined) continue;
    if ((failures.get(groupNumber(group))?.count ?? 0) < STUCK_AFTER) return 'working';
    isStuck = true;
  }
  if (!state.areVolumesRead) return 'working';
  return isStuck ? 'stuck' : 'done';
}
