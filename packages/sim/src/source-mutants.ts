import type { Fault } from './weather.ts';

/** One place of the source, said as it stands there, and what is to stand there. */
export interface Edit {
  /** From `packages` on. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A rule of the protocol taken out of the code: the simulator must see that it is missing. */
export interface SourceMutant {
  /** The rule's name in docs/internals/replication.md. */
  readonly rule: string;
  readonly edits: readonly Edit[];
  /** What must befall a cluster for the rule to matter. */
  readonly faults: readonly Fault[];
  /** These alone; else what the seed chooses too. */
  readonly alone?: boolean;
  readonly badMs: number;
  /** It is seen by this seed; undefined: no seed is known that sees it. */
  readonly seenBy?: number;
}

const PROPOSE = 'cluster/src/propose.ts';
const REGISTRATION = 'cluster/src/registration.ts';
const MEMBERSHIP = 'replica/src/membership.ts';
const COMMIT = 'replica/src/commit.ts';
const LOSSES: readonly Fault[] = ['kill', 'power', 'isolate'];

export const SOURCE_MUTANTS = {
  'a learner stays that the goal wants no more': {
    rule: 'J1',
    edits: [
      {
        file: 'replica/src/learner-source.ts',
        find: 'lacking(view.group(key)).includes(node)\n    );',
        replace: 'true);',
      },
    ],
    faults: ['rescale'],
    alone: true,
    badMs: 4_000,
    seenBy: 22,
  },
  'marks are not compared': {
    rule: 'M1',
    edits: [{ file: PROPOSE, find: "{ type: 'range', prefix: DOWN_PREFIX, notAfter: map.revision },", replace: '' }],
    faults: LOSSES,
    badMs: 12_000,
  },
  'eligible nodes stay so with minCopies': {
    rule: 'M2',
    edits: [{ file: PROPOSE, find: ' || members.length >= view.minCopies) return [];', replace: ') return [];' }],
    faults: LOSSES,
    badMs: 12_000,
    seenBy: 32,
  },
  'the fence is not passed on': {
    rule: 'M3',
    edits: [
      {
        file: PROPOSE,
        find: 'return from.filter(({ node }, i) => from.findIndex((other) => other.node === node) === i);',
        replace: 'return [];',
      },
    ],
    faults: ['isolate', 'watch-stuck', 'one-way'],
    badMs: 12_000,
  },
  'a learner counts before commits wait for it': {
    rule: 'J4',
    edits: [{ file: COMMIT, find: "if (primary.learner?.state === 'pending')", replace: 'if (false)' }],
    faults: ['rescale', 'delay', 'jitter'],
    badMs: 12_000,
  },
  'a learner of another session is added': {
    rule: 'J4',
    edits: [
      {
        file: PROPOSE,
        find: "      compare.push({ type: 'modified', key: liveKey(node), is: session });",
        replace: '      void node, session;',
      },
    ],
    faults: ['rescale', 'power', 'map-slow'],
    badMs: 12_000,
  },
  'a primary that sent a change before its restart still adds the learner': {
    rule: 'J4',
    edits: [
      {
        file: PROPOSE,
        find: "    compare.push({ type: 'modified', key: liveKey(primary), is: session });",
        replace: '    void session;',
      },
    ],
    faults: ['rescale', 'kill', 'map-slow'],
    badMs: 12_000,
  },
  'acknowledged by all but one': {
    rule: 'W7',
    edits: [
      {
        file: COMMIT,
        find: 'for (const member of primary.members.values()) upTo',
        replace: 'for (const member of [...primary.members.values()].slice(1)) upTo',
      },
    ],
    faults: ['power', 'isolate'],
    badMs: 6_000,
    seenBy: 4,
  },
  'commits below minCopies': {
    rule: 'S8',
    edits: [
      { file: COMMIT, find: 'if (view.inSync.length < view.minCopies) return;', replace: '' },
      { file: COMMIT, find: "assert(state.view.inSync.length >= state.view.minCopies, '", replace: "assert(true, '" },
      { file: 'replica/src/proposals.ts', find: 'view.inSync.length < view.minCopies', replace: 'false' },
    ],
    faults: ['isolate', 'kill', 'power'],
    alone: true,
    badMs: 12_000,
    seenBy: 7,
  },
  'a primary serves on while it gives its group away': {
    rule: 'L6',
    edits: [{ file: MEMBERSHIP, find: "if (plan.yields && primary.phase === 'serve')", replace: 'if (false)' }],
    faults: ['rescale', 'watch-stuck'],
    badMs: 12_000,
  },
  'a primary whose change may have been done takes its ballot again': {
    rule: 'L6',
    edits: [{ file: MEMBERSHIP, find: "if (event.outcome !== 'failed') return;", replace: '' }],
    faults: ['rescale', 'map-away', 'watch-stuck'],
    badMs: 12_000,
  },
  'nobody waits for the fence': {
    rule: 'L7',
    edits: [
      {
        file: 'replica/src/takeover.ts',
        find: 'return at >= primary.learnedAt + leaseMs + marginMs || fenceLeft(state, primary, context).length === 0;',
        replace: 'void leaseMs, marginMs; return true;',
      },
    ],
    faults: ['isolate', 'watch-stuck', 'one-way'],
    badMs: 12_000,
  },
  'a lease is renewed with an old map': {
    rule: 'L1',
    edits: [
      {
        file: 'cluster/src/node-session.ts',
        find: 'store.fresh(map.view.revision).then(',
        replace: 'Promise.resolve(map.view.revision).then(',
      },
    ],
    faults: ['watch-stuck', 'isolate'],
    badMs: 12_000,
  },
  'the session is no part of the ballot': {
    rule: 'S1',
    edits: [
      { file: 'cluster/src/derive.ts', find: 'config.revision, session, ...left', replace: 'config.revision, ...left' },
    ],
    faults: ['kill'],
    badMs: 6_000,
    seenBy: 2,
  },
  'a late sync cuts what was acknowledged': {
    rule: 'T3',
    edits: [
      {
        file: 'replica/src/member.ts',
        find: 'if (state.syncedIn === message.ballot) return acknowledge(state, effects);\n',
        replace: '\n',
      },
      {
        file: 'replica/src/member.ts',
        find: 'if (state.tail.some((entry) => entry.ballot === message.ballot && entry.sequence > message.after)) return;',
        replace: '',
      },
    ],
    faults: ['kill', 'delay', 'jitter', 'flaky'],
    badMs: 12_000,
  },
  'an old disk counts as the same': {
    rule: 'T6',
    edits: [{ file: REGISTRATION, find: "< life ? 'lost' : 'same'", replace: "< life ? 'same' : 'same'" }],
    faults: ['old-disk'],
    badMs: 12_000,
  },
  'a new disk comes without its mark': {
    rule: 'T6',
    edits: [{ file: REGISTRATION, find: 'write: [write, mark.write]', replace: 'write: [write]' }],
    faults: ['new-disk', 'rescale'],
    badMs: 12_000,
  },
  'a sweep leaves the slice as it is': {
    rule: 'sweep',
    edits: [{ file: 'cluster/src/upkeep.ts', find: "{ type: 'put', key, value: '{}' },", replace: '' }],
    faults: LOSSES,
    badMs: 12_000,
    seenBy: 1,
  },
  'a mark goes while groups need it': {
    rule: 'unmark',
    edits: [
      {
        file: 'cluster/src/marks.ts',
        find: 'if (listed && view.configRevision <= down.mark) return false;',
        replace: '',
      },
    ],
    faults: LOSSES,
    badMs: 12_000,
  },
  'no request is remembered': {
    rule: 'W5',
    edits: [
      {
        file: 'replica/src/proposals.ts',
        find: 'if (known === undefined) return false;',
        replace: 'if (known === undefined || true) return false;',
      },
      {
        file: 'replica/src/proposals.ts',
        find: "assert(context.requests.find(state.key, proposal.request.requestId) === undefined, '",
        replace: "assert(true, '",
      },
    ],
    faults: ['kill', 'flaky', 'drop', 'isolate'],
    alone: true,
    badMs: 12_000,
    seenBy: 4,
  },
  'blocks that nothing names go without a fence': {
    rule: 'B2',
    edits: [
      {
        file: 'replica/src/proposals.ts',
        find: 'fenced !== undefined && fenced.length > 0',
        replace: 'false',
      },
    ],
    faults: ['pause', 'map-slow', 'slow-way'],
    badMs: 12_000,
  },
  'deletions are not learned': {
    rule: 'J3',
    edits: [
      {
        file: 'replica/src/learner-compare.ts',
        find: "return ours.sequence > asOf ? 'leave' : 'remove';",
        replace: "return 'leave';",
      },
      {
        file: 'replica/src/learner-compare.ts',
        find: "return theirs.tombstone ? 'bury' : 'fetch';",
        replace: "return theirs.tombstone ? 'leave' : 'fetch';",
      },
    ],
    faults: ['kill', 'power', 'isolate'],
    alone: true,
    badMs: 12_000,
    seenBy: 3,
  },
} as const satisfies Record<string, SourceMutant>;

export type SourceMutantName = keyof typeof SOURCE_MUTANTS;

export function isSourceMutant(name: string): name is SourceMutantName {
  return name in SOURCE_MUTANTS;
}
