import type { GroupHealth } from '@webdfs/cluster';
import type { GroupLoop } from './group-loop.ts';
import type { Phase } from './state.ts';

/** The groups of one node at a glance; for `status`, metrics and tests. */
export interface GroupCounts {
  /** Groups this node is primary of, by phase. */
  readonly phases: Readonly<Record<Phase, number>>;
  /** Groups of which it is another member in sync, and of which it is a learner. */
  readonly member: number;
  readonly learner: number;
  /** Groups this node is primary of, by health. */
  readonly health: Readonly<Partial<Record<GroupHealth, number>>>;
  /** Learners that this node's groups have, and how many of them commits wait for. */
  readonly learners: number;
  readonly pendingLearners: number;
  /** Entries and bytes of this primary's groups that are not committed yet. */
  readonly flightEntries: number;
  readonly flightBytes: number;
  readonly requests: number;
  readonly posts: number;
  readonly messages: number;
}

export function countGroups(loop: GroupLoop): GroupCounts {
  const phases: Record<Phase, number> = { gather: 0, level: 0, sync: 0, serve: 0, yielded: 0 };
  const health: Partial<Record<GroupHealth, number>> = {};
  const counts = { member: 0, learner: 0, learners: 0, pendingLearners: 0, flightEntries: 0 };
  for (const { primary, view, last, commit } of loop.states()) {
    if (primary === undefined) {
      if (view.inSync.includes(loop.context.self)) counts.member++;
      else counts.learner++;
      continue;
    }
    phases[primary.phase]++;
    health[view.health] = (health[view.health] ?? 0) + 1;
    counts.flightEntries += last - commit;
    if (primary.learner === undefined) continue;
    counts.learners++;
    if (primary.learner.state === 'pending') counts.pendingLearners++;
  }
  const { posts, messages } = loop.outbox;
  return { ...counts, phases, health, flightBytes: loop.flightBytes, requests: loop.requests.size, posts, messages };
}
